// Draws docs/images/NAME.svg from NAME.d2: `make pictures`, which installs D2 (a program in WebAssembly) by npm.
// The last line of a picture names the text that it was drawn from; a test compares them.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [, , library, folder] = process.argv;
const { D2 } = await import(pathToFileURL(library));
const d2 = new D2();
for (const name of readdirSync(folder).filter((each) => each.endsWith(".d2"))) {
  const text = readFileSync(`${folder}/${name}`, "utf8");
  const { diagram, renderOptions } = await d2.compile(text, { layout: "elk" });
  const svg = await d2.render(diagram, { ...renderOptions, themeID: 0, noXMLTag: true });
  const source = createHash("sha256").update(text).digest("hex");
  writeFileSync(`${folder}/${name.replace(/d2$/, "svg")}`, `${svg}\n<!-- drawn from ${source} -->\n`);
}
process.exit(0);
