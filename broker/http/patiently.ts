/** How long the answer to an approval waits for the call, which goes on without it. */
const PATIENCE_MS = 15_000;

/** Resolves when the replay came to its end, or when the patience did. */
export async function patiently(replayed: Promise<void>): Promise<void> {
  let timeout: NodeJS.Timeout | undefined;
  const patience = new Promise<void>((resolve) => {
    timeout = setTimeout(resolve, PATIENCE_MS);
  });
  await Promise.race([replayed, patience]);
  clearTimeout(timeout);
}
