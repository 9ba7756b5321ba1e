/** The commands of docs/by-hand.md run, one after the other, and print what the page shows. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { ROOT } from '../world/checkout.ts';
import {
  missingTools,
  perform,
  type ShellWorld,
  startAsShown,
  still,
  stillJson,
  toolNote,
} from '../world/docs-commands.ts';
import { fencesOf } from '../world/markdown.ts';
import { newFolder } from '../world/stores.ts';

const PAGE = join(ROOT, 'docs', 'by-hand.md');

describe.skipIf(missingTools.length > 0)(`the commands of by-hand.md${toolNote}`, () => {
  const folder = newFolder();
  const world: ShellWorld = {
    folder,
    baseUrl: '',
    data: join(folder, '.agent-broker'),
    state: join(folder, 'state.env'),
  };
  const fences = fencesOf(readFileSync(PAGE, 'utf8'));
  const steps = fences.flatMap((fence, i) => {
    const next = fences[i + 1];
    return fence.info === 'sh run'
      ? [{ ...fence, answer: next && ['json', 'text'].includes(next.info) ? next : undefined }]
      : [];
  });

  beforeAll(async () => {
    world.baseUrl = await startAsShown(folder, world.data);
  });

  test('every block is run, and the output of most is compared', () => {
    expect(fences.filter(({ info }) => info.startsWith('sh'))).toHaveLength(steps.length);
    expect(steps.filter(({ answer }) => answer).length).toBeGreaterThan(6);
  });

  // The order matters: later blocks use the results of earlier ones.
  test.each(steps)('the block at line $line prints what the page shows', async ({ text, answer }) => {
    const printed = await perform(text, world);
    if (answer?.info === 'json') expect(stillJson(printed)).toEqual(stillJson(answer.text));
    else expect(still(printed)).toBe(answer ? still(answer.text) : '');
  });
});
