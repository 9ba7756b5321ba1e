/** A saved export is readable only by its owner, even after an interrupted save. */
import { readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { saveDownload } from '../../bin/save-download.ts';
import { newFolder } from '../world/stores.ts';

const modeOf = (path: string) => statSync(path).mode & 0o777;

test('a temporary file or symlink left by an earlier save affects neither mode nor path of the new file', async () => {
  const folder = newFolder();
  const path = join(folder, 'log.jsonl');
  writeFileSync(`${path}.part`, 'half', { mode: 0o644 });
  await saveDownload(piecesOf('one'), path);
  expect([readFileSync(path, 'utf8'), modeOf(path)]).toEqual(['one', 0o600]);
  const other = join(folder, 'other');
  writeFileSync(other, 'mine', { mode: 0o644 });
  symlinkSync(other, `${path}.part`);
  await saveDownload(piecesOf('two'), path);
  expect([readFileSync(path, 'utf8'), modeOf(path), readFileSync(other, 'utf8')]).toEqual(['two', 0o600, 'mine']);
});

async function* piecesOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}
