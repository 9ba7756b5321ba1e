/** Bodies whose end waits for an answer: without its last piece a platform has no whole request. */

/** The pieces as they come, but the last one only when `mayEnd` has resolved. Throws what that throws, and what `pieces` throws. */
export async function* withEndHeldBack(
  pieces: AsyncIterable<Uint8Array>,
  mayEnd: () => Promise<void> | void,
): AsyncGenerator<Uint8Array> {
  let last: Uint8Array | undefined;
  for await (const piece of pieces) {
    if (last !== undefined) yield last;
    last = piece;
  }
  await mayEnd();
  if (last !== undefined) yield last;
}
