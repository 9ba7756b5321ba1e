/**
 * Verifies exports from standard input, using only files beside this one: `variants/<name>/` has the verifier, complete or without one check. Each
 * export starts with a line of JSON that names the variant and the inputs, and ends with an empty line. One output line answers each.
 */
import { hash } from 'node:crypto';
import { Readable } from 'node:stream';

const { linesOf } = await import(new URL('variants/whole/verify/export-lines.js', import.meta.url).href);
const input = linesOf(Readable.toWeb(process.stdin).pipeThrough(new TextDecoderStream()));

/** Yields the lines up to the next empty one. */
async function* lines(): AsyncGenerator<string> {
  for (;;) {
    const { value, done } = await input.next();
    if (done || value === '') return;
    yield value;
  }
}

for (;;) {
  const { value, done } = await input.next();
  if (done || value === '') break;
  const { variant, keys, ...by } = JSON.parse(value);
  const at = new URL(`variants/${variant}/verify/`, import.meta.url).href;
  const { verifyLogExport } = await import(`${at}log-export.js`);
  const { readVerifierKeys } = await import(`${at}note.js`);
  const exported = [];
  for await (const line of lines()) exported.push(line);
  const digest = (bytes: Uint8Array) => hash('sha256', bytes, 'buffer');
  const verdict = await verifyLogExport(exported, { keys: await readVerifierKeys(keys), digest, ...by }).catch(
    (error: Error) => ({ ok: false, problems: [], thrown: error.stack }),
  );
  const { ok, problems, thrown } = verdict;
  process.stdout.write(`${JSON.stringify({ ok, problems, thrown })}\n`);
}
