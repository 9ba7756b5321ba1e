/** A code host's report of a push: row and receipt name the refused refs, or say that the report was incomplete. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import type { TestAgent } from '../world/agent.ts';
import { evidenceOf } from '../world/evidence.ts';
import { commandList, ZERO } from '../world/git-bytes.ts';
import { clone, remoteOf, runGit, startGitWorld } from '../world/git-world.ts';
import { listAuditRows } from '../world/rows.ts';
import { git } from '../world/servers/git-host.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { shared } from '../world/world.ts';

/** A hook of the bare repository that refuses refs with `no` in their names, and prints its reason. */
function refuseNo(bare: string): void {
  const hook = join(bare, 'hooks/update');
  mkdirSync(join(bare, 'hooks'), { recursive: true });
  writeFileSync(hook, '#!/bin/sh\ncase $1 in *no*) echo "ng refs/heads/agent/yes canary-reason" >&2; exit 1;; esac\n');
  chmodSync(hook, 0o755);
}

describe.each(STORES)(`the report of a push, on %s${postgresNote}`, (store) => {
  let agent: TestAgent;
  let folder: string;
  let bare: string;
  const given = shared(() => startGitWorld(store));
  beforeAll(async () => {
    bare = given.host.repository('acme/app');
    refuseNo(bare);
    agent = await given.agent();
    folder = await clone(agent, 'acme/app');
  });

  const push = (...args: string[]) => runGit(['push', remoteOf(agent, 'acme/app'), ...args], { folder });

  /** The row of the latest push, the report in its flags, and in its verified receipt. */
  async function latest() {
    const rows = await listAuditRows(given.world.db, given.organisation.id, { limit: 20 });
    const row = rows.find(({ path, reason }) => path?.endsWith('/git-receive-pack') && reason !== 'probe');
    const { failed, refused_refs, push_report, ended } = JSON.parse(row?.flags ?? '{}');
    const { payload, row: signed } = await evidenceOf(given.world, agent, row!.id);
    const receipt = { refused_refs: payload.refused_refs, push_report: payload.push_report };
    return { row: signed, flags: { failed, refused_refs, push_report }, ended, receipt };
  }

  test('a ref that a hook refuses, and one that it accepts, are recorded', async () => {
    const run = await push('HEAD:refs/heads/agent/yes', 'HEAD:refs/heads/agent/no');
    expect(run.code).not.toBe(0);
    expect(run.stderr).toContain('[remote rejected] HEAD -> agent/no (hook declined)');
    expect(git(bare, 'for-each-ref', '--format=%(refname:short)', 'refs/heads/agent')).toBe('agent/yes\n');
    const { row, flags, receipt } = await latest();
    expect(row).toMatchObject({ result: 'allowed', reason: 'approved', upstream_status: 200, receipt_format: 9 });
    expect(flags).toEqual({ failed: true, refused_refs: ['refs/heads/agent/no'] });
    expect(receipt).toEqual({ refused_refs: ['refs/heads/agent/no'], push_report: null });
    expect(JSON.stringify(row)).not.toContain('canary-reason');
  });

  test('a pack that the host does not store: all refs are recorded as refused', async () => {
    writeFileSync(join(folder, 'a.txt'), 'a');
    git(folder, 'add', '.');
    git(folder, 'commit', '-qm', 'a');
    git(bare, 'config', 'receive.maxInputSize', '1');
    const run = await push('HEAD:refs/heads/agent/large').finally(() =>
      git(bare, 'config', '--unset', 'receive.maxInputSize'),
    );
    expect(run.stderr).toContain('remote unpack failed');
    const { flags, receipt } = await latest();
    expect(flags).toEqual({ failed: true, refused_refs: ['refs/heads/agent/large'] });
    expect(receipt.refused_refs).toEqual(['refs/heads/agent/large']);
  });

  test('an accepted push adds no flags', async () => {
    expect(await push('HEAD:refs/heads/agent/taken')).toMatchObject({ code: 0 });
    const { row, flags, receipt } = await latest();
    expect([row.receipt_format, flags, receipt]).toEqual([2, {}, {}]);
  });

  /** Deletes branches with a handwritten request. */
  const remove = async (names: readonly string[], capabilities: string) => {
    for (const name of names) git(bare, 'update-ref', `refs/heads/${name}`, 'main');
    const main = git(bare, 'rev-parse', 'main').trim();
    const commands = names.map((name) => `${main} ${ZERO} refs/heads/${name}`);
    const answer = await fetch(`${agent.baseUrl}/git/acme/app/git-receive-pack`, {
      method: 'POST',
      headers: {
        authorization: `Basic ${btoa(`x:${agent.token()}`)}`,
        'content-type': 'application/x-git-receive-pack-request',
      },
      body: commandList(commands.map((one, i) => (i === 0 ? `${one}\0${capabilities}` : one))),
    });
    return await answer.text();
  };

  test('a report without side-band-64k is read', async () => {
    expect(await remove(['agent/noted', 'agent/old'], 'report-status delete-refs')).toContain(
      'ng refs/heads/agent/noted',
    );
    expect((await latest()).flags).toEqual({ failed: true, refused_refs: ['refs/heads/agent/noted'] });
  });

  test('a client that requests no report is recorded as such', async () => {
    expect(await remove(['agent/old'], 'delete-refs')).toBe('');
    expect(git(bare, 'for-each-ref')).not.toContain('agent/old');
    const { row, ended, flags, receipt } = await latest();
    expect([row.result, ended, row.receipt_format]).toEqual(['allowed', 'complete', 9]);
    expect(flags).toEqual({ push_report: 'not_asked' });
    expect(receipt).toEqual({ refused_refs: [], push_report: 'not_asked' });
  });

  test('a host that sends no report although requested is recorded as such', async () => {
    given.host.answer = (request, response) => {
      request.resume().on('end', () => {
        response.writeHead(200, { 'content-type': 'application/x-git-receive-pack-result' }).end('0000');
      });
    };
    await remove(['agent/old'], 'report-status delete-refs').finally(() => {
      given.host.answer = undefined;
    });
    const { row, flags, receipt } = await latest();
    expect([row.result, flags]).toEqual(['allowed', { push_report: 'missing' }]);
    expect(receipt).toEqual({ refused_refs: [], push_report: 'missing' });
  });
});
