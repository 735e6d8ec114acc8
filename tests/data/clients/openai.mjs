// OpenAI's own client: a chat with a picture in an earlier turn and with tools, whole and streamed, and a refusal.
import OpenAI from "openai";

const PICTURE = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };
const TOOLS = [{ type: "function", function: { name: "clock", parameters: { type: "object", properties: {} } } }];
const CHAT = {
  model: "docs",
  tools: TOOLS,
  temperature: 0.2,
  messages: [
    { role: "user", content: [{ type: "text", text: "What is this?" }, PICTURE] },
    { role: "assistant", content: "A table." },
    { role: "user", content: "How do I load csv files?" },
  ],
};

export async function run(baseURL, apiKey) {
  const client = new OpenAI({ baseURL, apiKey, dangerouslyAllowBrowser: true, maxRetries: 0 });
  const { data, response } = await client.chat.completions.create(CHAT).withResponse();
  let streamed = "";
  for await (const chunk of await client.chat.completions.create({ ...CHAT, stream: true })) {
    streamed += chunk.choices[0]?.delta?.content ?? "";
  }
  const refused = await client.chat.completions.create({ ...CHAT, tool_choice: "required" }).catch((error) => error);
  const models = [];
  for await (const model of client.models.list()) models.push(model.id);
  return {
    text: data.choices[0].message.content,
    streamed,
    ignored: response.headers.get("x-raydex-ignored"),
    refused: [refused.status, refused.param],
    models,
  };
}
