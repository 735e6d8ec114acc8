/** What the chat page uses of marked.js. */

export interface Token {
  type: string;
  raw: string;
  text: string;
  depth?: number;
  tokens?: Token[];
}

interface Rendered extends Token {
  block?: boolean;
  checked?: boolean;
  lang?: string;
  n?: string;
}

interface Renderer {
  parser: {parseInline(tokens: Token[]): string};
}

type Render = (this: Renderer, token: Rendered) => string;

interface Extension {
  name: string;
  level: "block" | "inline";
  start(text: string): number | undefined;
  tokenizer(text: string): {type: string; raw: string; [more: string]: string} | undefined;
  renderer: Render;
}

export class Marked {
  constructor(options: {gfm: boolean; extensions: Extension[]; renderer: Record<string, Render>});
  defaults: object;
  Parser: {parseInline(tokens: Token[], options: object): string};
  lexer(markdown: string): Token[] & {links: object};
  parser(tokens: Token[]): string;
}
