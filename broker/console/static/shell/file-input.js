// A file field whose file is read in the page.
import { asError } from '/console/api.js';
import { html, useState } from '/console/html.js';
import { Problem } from '/console/shell/use-doing.js';
import { textOf } from '/console/utf8.js';

/**
 * `read` receives the file's text and name; an empty text without a name when no file is chosen, or when it is not text, with the reason shown
 * below the field. All other props are attributes of the field.
 *
 * @param {{ read: (text: string, name?: string) => void, [attribute: string]: unknown }} props
 */
export function FileInput({ read, ...attributes }) {
  const [problem, setProblem] = useState(/** @type {Error | undefined} */ (undefined));
  const chosen = async (/** @type {{ currentTarget: HTMLInputElement }} */ { currentTarget }) => {
    const file = currentTarget.files?.[0];
    // Another file may be chosen while this one is being read.
    const isChosen = () => currentTarget.files?.[0] === file;
    setProblem(undefined);
    read('');
    try {
      const text = file && (await textOf(file));
      if (text !== undefined && isChosen()) read(text, file?.name);
    } catch (error) {
      if (isChosen()) setProblem(asError(error));
    }
  };
  return html`<input type="file" ...${attributes} onChange=${chosen} /><${Problem} problem=${problem} />`;
}
