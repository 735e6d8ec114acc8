/** Reads server-sent events from the body of a reply. */

/** Heartbeats arrive every 15 seconds: after missing three of them the connection is dead. */
const SILENCE_MS = 45_000;

/** Yield `[name, data]` of each event of `body`, a ReadableStream of bytes. Throws if it is silent for too long. */
export async function* readEvents(body, silenceMs = SILENCE_MS) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const {done, value} = await within(silenceMs, reader.read());
      if (done) return;
      const blocks = (rest + value).split(/\r?\n\r?\n/);
      rest = blocks.pop();
      yield* blocks.map(parseEvent).filter(Boolean);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function parseEvent(block) {
  const fields = block
    .split(/\r?\n/)
    .map(line => /^(\w+): ?(.*)$/.exec(line))
    .filter(Boolean);
  const all = name => fields.filter(field => field[1] === name).map(field => field[2]);
  const data = all("data").join("\n");
  return data ? [all("event").at(-1) ?? "message", JSON.parse(data)] : null;
}

function within(ms, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error("nothing came for too long")), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
