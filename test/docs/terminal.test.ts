/** The commands of these pages run, one after the other, and print what the page shows. */
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

/** Returns the text with the varying parts of these outputs replaced: short ids, hashes, times and remaining times. */
const same = (text: string): string =>
  still(text)
    .replaceAll(/\b[0-9a-f]{64}\b/g, '<sha256>')
    .replaceAll(/^[0-9a-f]{6}(?= )/gm, '<short>')
    .replaceAll(/\b2[34] h\b/g, '<left>')
    // The time since the call depends on the speed of the machine.
    .replaceAll(/Worked (?:just now|\d+ (?:s|min) ago) +/g, '<worked> ')
    .replaceAll(/STATE +USED/g, 'STATE USED');

/** The pages per broker: pending calls of one page would appear in the lists of another. */
const WORLDS = [['docs/terminal.md'], ['docs/clients/curl.md', 'docs/clients/remote.md']];

describe.skipIf(missingTools.length > 0).each(WORLDS)(`the commands of %s${toolNote}`, (...pages) => {
  const folder = newFolder();
  const world: ShellWorld = { folder, baseUrl: '', data: join(folder, 'data'), state: join(folder, 'state.env') };
  const steps = pages.flatMap((page) => {
    const fences = fencesOf(readFileSync(join(ROOT, page), 'utf8'));
    return fences.flatMap((fence, i) => {
      const next = fences[i + 1];
      const answer = next && ['text', 'json'].includes(next.info) ? next : undefined;
      return fence.info === 'sh run' ? [{ ...fence, page, answer }] : [];
    });
  });

  beforeAll(async () => {
    world.baseUrl = await startAsShown(folder, world.data);
  });

  test('the output of most blocks is compared', () => {
    expect(new Set(steps.map(({ page }) => page)).size).toBe(pages.length);
    expect(steps.filter(({ answer }) => answer).length).toBeGreaterThan(steps.length / 2);
  });

  // The order matters: later blocks use the results of earlier ones.
  test.each(steps)('the block at $page:$line prints what the page shows', async ({ text, answer }) => {
    const printed = await perform(text, world);
    if (answer?.info === 'json') expect(stillJson(printed)).toEqual(stillJson(answer.text));
    else expect(same(printed)).toBe(same(answer?.text ?? ''));
  });
});

test('every block of terminal.md and curl.md is run', () => {
  for (const page of ['docs/terminal.md', 'docs/clients/curl.md']) {
    const fences = fencesOf(readFileSync(join(ROOT, page), 'utf8'));
    expect(fences.filter(({ info }) => info.startsWith('sh')).map(({ info }) => info)).not.toContain('sh');
  }
});
