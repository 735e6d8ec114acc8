// Runs one client and prints its results: node run.mjs openai http://127.0.0.1:8000/v1 KEY
const [name, baseURL, apiKey] = process.argv.slice(2);
const { run } = await import(`./${name}.mjs`);
console.log(JSON.stringify(await run(baseURL, apiKey)));
