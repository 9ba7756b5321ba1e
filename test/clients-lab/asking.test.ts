/** An SDK under `agent-broker run` throws an error that explains how to request the missing scope, and works once an owner has granted it. */
import { expect, test, vi } from 'vitest';
import { profileOf, run, startRun } from '../sidecar/run-world.ts';
import { expectStatus } from '../world/agent.ts';
import { BIN } from '../world/checkout.ts';
import { scaledTimeout } from '../world/runner/test-timeouts.ts';
import { withoutLab } from './installed.ts';
import { givenLab } from './lab-world.ts';

const PROGRAM = `
  import { execFileSync } from 'node:child_process';
  import { createRequire } from 'node:module';
  const load = createRequire('${import.meta.dirname}/package.json');
  const { Octokit } = load('@octokit/rest');
  const { GITHUB_TOKEN: auth, GITHUB_API_URL: baseUrl } = process.env;
  const read = () => new Octokit({ auth, baseUrl }).rest.repos.get({ owner: 'acme', repo: 'app' });
  const thrown = await read().catch(({ message }) => message);
  console.log(thrown);
  const [, command = ''] = /run: npx agent-broker (request-access \\S+ \\S+)/.exec(thrown) ?? [];
  if (process.argv[1] === 'ask') {
    execFileSync(process.execPath, ['${BIN}', ...command.split(' ').filter(Boolean)], { stdio: 'inherit' });
    console.log((await read()).data.full_name);
  }
`;

test.skipIf(withoutLab)(
  `Octokit's error names the command that requests the scope, and the call works once it is granted${withoutLab ? ` (skipped: ${withoutLab})` : ''}`,
  { timeout: scaledTimeout(120_000) },
  async () => {
    const { world, organisation, agent } = lab;
    const holder = await agent('github', { without: 'codehost:metadata.read', heldScope: 'codehost:issues.write' });
    const words = ['--', process.execPath, '--input-type=module', '-e', PROGRAM];
    const refused = await run(profileOf(holder), words);
    const told = /agent-broker: scope_not_granted: .* run: npx agent-broker request-access github codehost:\S+/;
    expect(refused.stdout, refused.stderr).toMatch(told);
    const started = startRun(profileOf(holder), [...words, 'ask']);
    const asked = await vi.waitFor(
      async () => {
        const { body } = await organisation.ask('GET', '/owner/access-requests?status=pending');
        expect(body.access_requests).toHaveLength(1);
        return body.access_requests[0];
      },
      { timeout: 60_000, interval: 100 },
    );
    expect(world.upstream.seen).toEqual([]);
    await expectStatus(200, organisation.ask('POST', `/owner/access-requests/${asked.request_id}/approve`, {}));
    const ended = await started.ended;
    expect(ended.code, ended.stderr).toBe(0);
    expect(ended.stdout).toMatch(/acme\/app\n$/);
  },
);

const lab = givenLab();
