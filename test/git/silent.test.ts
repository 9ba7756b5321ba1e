/** A code host that stops sending during a git request: before the head of its answer, and in the middle of a pack. */

import { writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { TestAgent } from '../world/agent.ts';
import { evidenceOf } from '../world/evidence.ts';
import { clone, remoteOf, runGit, startGitWorld } from '../world/git-world.ts';
import { git } from '../world/servers/git-host.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { shared } from '../world/world.ts';
import { expectNothingLeft, rowsOf } from './nothing-left.ts';

/** Far below the default idle timeout of 60 seconds. */
const MAX_MS = 20_000;

describe.each(ONE_STORE)(`a silent code host, with idle_seconds: 1, on %s${postgresNote}`, (store) => {
  let agent: TestAgent;
  let folder: string;
  const given = shared(() => startGitWorld(store));
  beforeAll(async () => {
    given.host.repository('acme/app');
    agent = await given.agent();
    folder = await clone(agent, 'acme/app');
    writeFileSync(join(folder, 'a.txt'), 'a');
    git(folder, 'add', '.');
    git(folder, 'commit', '-qm', 'a');
    const { body } = await given.organisation.ask('GET', '/owner/connections');
    const settings = `/owner/connections/${body.connections[0].id}/settings`;
    expect((await given.organisation.ask('POST', settings, { idle_seconds: 1 })).status).toBe(200);
  });
  beforeEach(async () => {
    given.host.answer = undefined;
    await given.world.forgive();
  });

  /**
   * Waits until the broker stores nothing and no call is in flight; each test waits itself for the connection to the code host to close.
   */
  const rows = () => rowsOf(given);
  const newest = async () => (await rows())[0]!;
  const flagsOf = ({ flags }: { flags: string | null }) => JSON.parse(flags ?? '{}');
  /** Sends nothing from the first request of this method on; resolves when the connection of that request is closed. */
  const silentAt = (method: 'GET' | 'POST', head: (response: ServerResponse) => unknown = () => {}) => {
    const closed = Promise.withResolvers<void>();
    given.host.answer = (request, response) => {
      if (request.method !== method || request.headers['content-length'] === '4') return false;
      request.socket.once('close', () => closed.resolve());
      head(response);
      return true;
    };
    return closed.promise;
  };
  const timed = async (...args: string[]) => {
    const begun = performance.now();
    const run = await runGit(args, { folder });
    expect(performance.now() - begun).toBeLessThan(MAX_MS);
    expect(run.code, run.stderr).not.toBe(0);
    return run.stderr;
  };

  test('a timeout before the head of a listing', async () => {
    const closed = silentAt('GET');
    expect(await timed('ls-remote', remoteOf(agent, 'acme/app'))).toMatch(
      /^remote: agent-broker: upstream_unreachable - acme\/app: /m,
    );
    await closed;
    expect(await newest()).toMatchObject({ result: 'errored', method: 'GET', reason: 'upstream_unreachable' });
    await expectNothingLeft(given);
  });

  test('a timeout before the head of an answer to a fetch', async () => {
    const closed = silentAt('POST');
    expect(await timed('clone', '-q', remoteOf(agent, 'acme/app'), 'copy')).toMatch(
      /^fatal: remote error: agent-broker: upstream_unreachable - acme\/app: /m,
    );
    await closed;
    await expectNothingLeft(given);
  });

  test('a timeout before the head of an answer to a push has an unknown outcome', async () => {
    const closed = silentAt('POST');
    expect(await timed('push', remoteOf(agent, 'acme/app'), 'HEAD:agent/x')).toMatch(
      /^remote: agent-broker: upstream_unreachable - acme\/app: /m,
    );
    await closed;
    const row = await newest();
    expect(row).toMatchObject({ result: 'errored', state: 'final' });
    expect(flagsOf(row)).toMatchObject({
      pushed_refs: [{ ref: 'refs/heads/agent/x', action: 'create' }],
      outcome: 'unknown',
    });
    await evidenceOf(given.world, agent, row.id);
    await expectNothingLeft(given);
  });

  test('a timeout in the middle of a pack', async () => {
    const closed = silentAt('POST', (response) => {
      response.writeHead(200, { 'content-type': 'application/x-git-upload-pack-result' });
      response.write('000dpackfile\n');
    });
    await timed('clone', '-q', remoteOf(agent, 'acme/app'), 'cut');
    await closed;
    const fetched = async () => (await rows()).find(({ path }) => path?.endsWith('/git-upload-pack'));
    await expect.poll(async () => flagsOf((await fetched())!).ended).toBe('idle');
    await evidenceOf(given.world, agent, (await fetched())!.id);
    await expectNothingLeft(given);
  });
});
