// The lines of an export of a receipt log.

/**
 * Splits at line feeds alone: rows may hold other separators, as U+2028, as they are.
 *
 * @param {ReadableStream<string>} text read as a stream: exports are large
 */
export async function* linesOf(text) {
  let rest = '';
  const reader = text.getReader();
  for (;;) {
    const { done, value = '' } = await reader.read();
    const lines = (rest + value).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
    if (done) break;
  }
  yield rest;
}
