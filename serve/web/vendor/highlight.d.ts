/** What the chat page uses of highlight.js. */

declare const hljs: {
  getLanguage(name: string | undefined): object | undefined;
  highlight(code: string, options: {language: string; ignoreIllegals: boolean}): {value: string};
};
export default hljs;
