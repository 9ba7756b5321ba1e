/** Holds back the end of a request body until a check has passed: without its last piece a platform has no complete request. */

/** Yields the pieces as they arrive, but the last one only after `mayEnd` has resolved. Rethrows errors of `mayEnd` and `pieces`. */
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
