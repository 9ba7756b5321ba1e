/** The commands of docs/git.md run, one after the other, and print what the page shows. GitHub is a small server on loopback. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { ROOT } from '../world/checkout.ts';
import { missingTools, perform, type ShellWorld, startBlock, toolNote } from '../world/docs-commands.ts';
import { fencesOf, withoutFences } from '../world/markdown.ts';
import { startGitHost } from '../world/servers/git-host.ts';
import { newFolder } from '../world/stores.ts';

const PAGE = readFileSync(join(ROOT, 'docs', 'git.md'), 'utf8');
const SECRET = 'ghp_CANARY0123456789';
/** The git identity of the reader. */
const READER = ['AUTHOR', 'COMMITTER'].map((who) => `export GIT_${who}_NAME=Ann GIT_${who}_EMAIL=ann@acme.example\n`);

describe.skipIf(missingTools.length > 0)(`the commands of git.md${toolNote}`, () => {
  const folder = newFolder();
  const world: ShellWorld = {
    folder,
    baseUrl: '',
    data: join(folder, '.agent-broker'),
    state: join(folder, 'state.env'),
    home: newFolder(),
  };
  const fences = fencesOf(PAGE);
  const steps = fences.flatMap((fence, i) => {
    const next = fences[i + 1];
    return fence.info === 'sh run' ? [{ ...fence, answer: next?.info === 'text' ? next.text : undefined }] : [];
  });

  beforeAll(async () => {
    const host = await startGitHost({ secret: SECRET });
    host.repository('acme/app');
    host.answer = (request, response) => {
      if (request.url !== '/repos/acme/app/pulls') return false;
      const isTold = request.headers.authorization === `Bearer ${SECRET}`;
      return response.writeHead(isTold ? 201 : 401, { 'content-type': 'application/json' }).end('{"number":7}');
    };
    const governance = fences.find(({ info }) => info === 'yaml')?.text ?? '';
    const here = `use: github, base_url: "${host.url}", git_base_url: "${host.url}"`;
    writeFileSync(join(folder, 'governance.yaml'), governance.replace('use: github', here));
    writeFileSync(world.state, READER.join(''));
    const serve = fences.find(({ info }) => info === 'sh serve')?.text ?? '';
    world.baseUrl = await startBlock(serve.replace('ghp_…', SECRET), world, {
      AGENT_BROKER_ALLOW_PRIVATE: host.address,
    });
  });

  test('every block of the page is used here: as a file, as a command, or as the output of a command', () => {
    const uses = fences.map(({ info }, i) => (info === 'text' && fences[i - 1]?.info !== 'sh run' ? 'unused' : info));
    expect(uses.filter((info) => info !== 'sh run' && info !== 'text').sort()).toEqual(['sh serve', 'yaml']);
    // The parser of fences does not find indented blocks and blocks fenced with tildes.
    expect(withoutFences(PAGE)).not.toMatch(/^\s*(?:```|~~~)|^ {4,}\S|<pre/m);
    expect(steps.filter(({ answer }) => answer).length).toBeGreaterThan(5);
  });

  // The order matters: later blocks use the results of earlier ones.
  test.each(steps)('the block at line $line prints what the page shows', async ({ text, answer }) => {
    const printed = await perform(text, world);
    expect(printed).not.toContain(SECRET);
    if (answer !== undefined)
      expect(printed.split('\n').map((line) => line.trimEnd())).toEqual(
        answer.split('\n').map((line) => line.trimEnd()),
      );
  });
});
