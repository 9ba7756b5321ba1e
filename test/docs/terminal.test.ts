/** The commands of docs/terminal.md run, one after the other, and answer what the page shows. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { ROOT } from '../world/checkout.ts';
import { fencesOf } from '../world/markdown.ts';
import { missingTools, perform, type ShellWorld, startAsShown, still, toolNote } from '../world/shell-page.ts';
import { newFolder } from '../world/stores.ts';

const PAGE = join(ROOT, 'docs', 'terminal.md');

/** The same with what differs in these outputs: short ids, hashes, times and how long is left. */
const same = (text: string): string =>
  still(text)
    .replaceAll(/\b[0-9a-f]{64}\b/g, '<sha256>')
    .replaceAll(/^[0-9a-f]{6}(?= )/gm, '<short>')
    .replaceAll(/\b2[34] h\b/g, '<left>')
    // On a slow machine it is longer ago.
    .replaceAll(/Worked (?:just now|\d+ (?:s|min) ago) +/g, '<worked> ')
    .replaceAll(/STATE +USED/g, 'STATE USED');

describe.skipIf(missingTools.length > 0)(`the commands of terminal.md${toolNote}`, () => {
  const folder = newFolder();
  const world: ShellWorld = { folder, baseUrl: '', data: join(folder, 'data'), state: join(folder, 'state.env') };
  const fences = fencesOf(readFileSync(PAGE, 'utf8'));
  const steps = fences.flatMap((fence, i) => {
    const next = fences[i + 1];
    return fence.info === 'sh run' ? [{ ...fence, answer: next?.info === 'text' ? next.text : '' }] : [];
  });

  beforeAll(async () => {
    world.baseUrl = await startAsShown(folder, world.data);
  });

  test('every block is run, and most of them are answered', () => {
    expect(fences.filter(({ info }) => info.startsWith('sh'))).toHaveLength(steps.length);
    expect(steps.filter(({ answer }) => answer !== '').length).toBeGreaterThan(steps.length / 2);
  });

  // In order: a later block uses what an earlier one made.
  test.each(steps)('the block at line $line answers what is shown', async ({ text, answer }) => {
    expect(same(await perform(text, world))).toBe(same(answer));
  });
});
