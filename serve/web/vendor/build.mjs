/**
 * Makes the libraries of the chat page from npm packages: `npm install && node build.mjs` in this folder.
 *
 * Each becomes one minified ES module with its version and licence in its first line. The service needs none of this:
 * the built files are committed.
 */
import {readFileSync, writeFileSync} from "node:fs";
import {build} from "esbuild";

// What documentation of software shows most. A language that is not here is shown without colours.
const LANGUAGES = [
  "bash", "c", "cpp", "css", "diff", "dockerfile", "go", "http", "ini", "java", "javascript", "json", "python",
  "python-repl", "rust", "shell", "sql", "typescript", "xml", "yaml",
];
const highlight = [
  'import hljs from "highlight.js/lib/core";',
  ...LANGUAGES.map((name, i) => `import l${i} from "highlight.js/lib/languages/${name}";`),
  ...LANGUAGES.map((name, i) => `hljs.registerLanguage("${name}", l${i});`),
  'hljs.registerAliases(["console", "shell-session"], {languageName: "shell"});',
  "export default hljs;",
].join("\n");
const LIBRARIES = {
  dompurify: 'export {default} from "dompurify";',
  "highlight.js": highlight,
  marked: 'export {Marked} from "marked";',
};

const licences = [];
for (const [name, contents] of Object.entries(LIBRARIES)) {
  const folder = `node_modules/${name}`;
  const {version, license} = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  await build({
    stdin: {contents, resolveDir: "."},
    outfile: `${name.replace(".js", "")}.js`,
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2022",
    legalComments: "none",
    banner: {js: `/* ${name} ${version} | ${license} | built by build.mjs, see LICENSES.txt */`},
  });
  const text = readFileSync(`${folder}/LICENSE`, "utf8").replaceAll("\r\n", "\n").trim();
  licences.push(`${name} ${version} (${license})\n${"=".repeat(72)}\n${text}\n`);
}
writeFileSync("LICENSES.txt", licences.join("\n\n"));
