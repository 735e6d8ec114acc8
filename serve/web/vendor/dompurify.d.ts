/** What the chat page uses of dompurify.js. */

interface Options {
  ALLOWED_TAGS: string[];
  ALLOWED_ATTR: string[];
  ALLOW_ARIA_ATTR: boolean;
  ALLOW_DATA_ATTR: boolean;
  RETURN_DOM_FRAGMENT: true;
}

declare const DOMPurify: {sanitize(markup: string, options: Options): DocumentFragment};
export default DOMPurify;
