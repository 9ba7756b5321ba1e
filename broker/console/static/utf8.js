// Decodes text files strictly: with replacement characters, a rule would compare with another word than its author wrote.

/** Removes a byte order mark at the start. */
const decoder = new TextDecoder('utf-8', { fatal: true });

/**
 * Decodes UTF-8. Throws an Error whose message is the end of a sentence that begins with the file's name.
 *
 * @param {Uint8Array<ArrayBuffer>} bytes
 */
export function textIn(bytes) {
  try {
    return decoder.decode(bytes);
  } catch {
    const [first, second] = bytes;
    if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff))
      throw new Error('is text in UTF-16; save it in UTF-8.');
    throw new Error(`is not text in UTF-8, from its line ${lineOfFault(bytes)} on; save it in UTF-8.`);
  }
}

/** Returns the number of the first invalid line: no UTF-8 sequence continues across a line break. @param {Uint8Array<ArrayBuffer>} bytes */
function lineOfFault(bytes) {
  for (let line = 1, from = 0; ; line++) {
    const end = bytes.indexOf(0x0a, from);
    try {
      decoder.decode(bytes.subarray(from, end === -1 ? undefined : end));
    } catch {
      return line;
    }
    from = end + 1;
  }
}

/** Reads the text of a chosen file. Throws an Error with the file's name. @param {File} file */
export async function textOf(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  try {
    return textIn(bytes);
  } catch (error) {
    throw new Error(`${file.name} ${error instanceof Error ? error.message : error}`);
  }
}
