// LangChain's chat model, with tools bound like in its agents.
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { ChatOpenAI } from "@langchain/openai";

export async function run(baseURL, apiKey) {
  const plain = new ChatOpenAI({ model: "docs", apiKey, temperature: 0.2, maxRetries: 0, configuration: { baseURL } });
  const tools = [{ type: "function", function: { name: "clock", parameters: { type: "object", properties: {} } } }];
  const picture = { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } };
  const messages = [
    new HumanMessage({ content: [{ type: "text", text: "What is this?" }, picture] }),
    new AIMessage("A table."),
    new HumanMessage("How do I load csv files?"),
  ];
  const whole = await plain.bindTools(tools).invoke(messages);
  let streamed = "";
  for await (const piece of await plain.bindTools(tools).stream(messages)) streamed += piece.content;
  const refused = await plain.bindTools(tools, { tool_choice: "required" }).invoke(messages).catch((error) => error);
  return { text: whole.content, streamed, refused: [refused.status, refused.param] };
}
