/** The commands of these pages run, one after the other, and answer what the page shows. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { ROOT } from '../world/checkout.ts';
import { fencesOf } from '../world/markdown.ts';
import {
  missingTools,
  perform,
  type ShellWorld,
  startAsShown,
  still,
  stillJson,
  toolNote,
} from '../world/shell-page.ts';
import { newFolder } from '../world/stores.ts';

/** The same with what differs in these outputs: short ids, hashes, times and how long is left. */
const same = (text: string): string =>
  still(text)
    .replaceAll(/\b[0-9a-f]{64}\b/g, '<sha256>')
    .replaceAll(/^[0-9a-f]{6}(?= )/gm, '<short>')
    .replaceAll(/\b2[34] h\b/g, '<left>')
    // On a slow machine it is longer ago.
    .replaceAll(/Worked (?:just now|\d+ (?:s|min) ago) +/g, '<worked> ')
    .replaceAll(/STATE +USED/g, 'STATE USED');

/** The pages of a broker each: what one leaves waiting would be among what another one lists. */
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

  test('most blocks are answered', () => {
    expect(new Set(steps.map(({ page }) => page)).size).toBe(pages.length);
    expect(steps.filter(({ answer }) => answer).length).toBeGreaterThan(steps.length / 2);
  });

  // In order: a later block uses what an earlier one made.
  test.each(steps)('the block at $page:$line answers what is shown', async ({ text, answer }) => {
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
