// The Vercel AI SDK with its provider for OpenAI-compatible services.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, streamText, tool } from "ai";

export async function run(baseURL, apiKey) {
  const model = createOpenAICompatible({ name: "raydex", baseURL, apiKey })("docs");
  const tools = { clock: tool({ description: "The time", inputSchema: jsonSchema({ type: "object", properties: {} }) }) };
  const picture = { type: "file", mediaType: "image/png", data: new Uint8Array([1, 2, 3]) };
  const messages = [
    { role: "user", content: [{ type: "text", text: "What is this?" }, picture] },
    { role: "assistant", content: "A table." },
    { role: "user", content: "How do I load csv files?" },
  ];
  const whole = await generateText({ model, messages, tools, temperature: 0.2, maxRetries: 0 });
  let streamed = "";
  for await (const piece of streamText({ model, messages, tools, maxRetries: 0 }).textStream) streamed += piece;
  const refused = await generateText({ model, messages, tools, toolChoice: "required", maxRetries: 0 }).catch((error) => error);
  return {
    text: whole.text,
    streamed,
    ignored: whole.response.headers["x-raydex-ignored"],
    refused: [refused.statusCode, JSON.parse(refused.responseBody).error.param],
  };
}
