/** Look-back rules with git calls: fetches count for pushes, and for calls through other entry points. */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { clone, remoteOf, runGit, startGitWorld } from '../world/git-world.ts';
import { git } from '../world/servers/git-host.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { shared } from '../world/world.ts';

const OUTSIDE = { scopes: ['codehost:contents.read'], endpoints: ['/git/outside/**'], within: '8h' };
const NO_PUSH = { name: 'no-push', effect: 'deny', scopes: ['codehost:contents.write'], after: OUTSIDE };

describe.each(ONE_STORE)(`git and rules that look back on %s${postgresNote}`, (store) => {
  const given = shared(() => startGitWorld(store));
  beforeAll(async () => {
    given.host.repository('acme/app');
    given.host.repository('outside/lib');
    await given.organisation.guardrails([NO_PUSH]);
  });

  async function changed(bytes = 10) {
    const agent = await given.agent();
    const work = await clone(agent, 'acme/app');
    writeFileSync(join(work, 'change.txt'), randomBytes(bytes));
    git(work, 'add', '.');
    git(work, 'commit', '-qm', 'change');
    const push = () =>
      runGit(['push', remoteOf(agent, 'acme/app'), `HEAD:refs/heads/agent/${bytes}`], {
        folder: work,
        config: { 'http.postBuffer': '20000000' },
      });
    return { agent, push };
  }

  test('a push passes; after a clone of an outside repository it is refused, with the reason in git’s output', async () => {
    const { agent, push } = await changed();
    const first = await push();
    expect(first.code, first.stderr).toBe(0);
    await clone(agent, 'outside/lib');
    const { code, stderr } = await push();
    expect(code).not.toBe(0);
    expect(stderr).toContain('denied_by_guardrail');
    expect(stderr).toMatch(/no-push denies this call: the agent made the call [0-9a-f-]{36} at 20/);
  });

  test('a long push, which is streamed, is completed', async () => {
    const { push } = await changed(3_000_000);
    const { code, stderr } = await push();
    expect(code, stderr).toBe(0);
  });

  test('a git request whose answer a rule would mask is refused with the reason', async () => {
    const agent = await given.agent();
    const rule = { name: 'no-mail', effect: 'mask', scopes: ['codehost:*'], mask: { values: ['email'] } };
    await given.organisation.guardrails([NO_PUSH, rule]);
    const { code, stderr } = await runGit(['ls-remote', remoteOf(agent, 'acme/app')]);
    await given.organisation.guardrails([NO_PUSH]);
    expect(code).not.toBe(0);
    expect(stderr).toContain('no-mail masks what this call is answered, and nothing can be masked in what git answers');
  });
});
