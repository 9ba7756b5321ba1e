/** An agent is revoked while an owner makes a credential for it: the credential ends with the agent, and is not listed as live. */
import { CompactEncrypt, importJWK } from 'jose';
import { sql } from 'kysely';
import { describe, expect, onTestFinished, test } from 'vitest';
import { jsonPost, send } from '../world/agent.ts';
import { expectEnvelope } from '../world/evidence.ts';
import { slowCommits, untilCommitting } from '../world/slow-commits.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { givenWorld } from '../world/world.ts';

describe.runIf(STORES.includes('postgres'))(`an agent that is revoked meanwhile${postgresNote}`, () => {
  const world = givenWorld('postgres');

  test.each([
    [
      'static key',
      'static_keys',
      '/owner/agents/{agent}/static-keys',
      { label: 'ci', connection: 'demo-main', expires_in_seconds: 3600 },
      sql<boolean>`ended_at is not null`,
    ],
    [
      'bootstrap token',
      'one_time_tokens',
      '/owner/agents/{agent}/bootstrap-token',
      { rotate: true },
      sql<boolean>`used_at is not null`,
    ],
    [
      'authorisation to send a secret',
      'secret_authorizations',
      '/owner/secret-authorizations',
      { platform: 'demo' },
      sql<boolean>`expires_at < created_at + 3600000`,
    ],
  ])('leaves no usable %s', async (_, table, route, body, isEnded) => {
    const organisation = await world.demoOrganisation();
    const agent = await organisation.agent();
    await slowCommits(world.db, table);
    const making = organisation.ask('POST', route.replace('{agent}', agent.agentId), {
      ...body,
      ...(!route.includes('{agent}') && { agent: agent.agentId }),
    });
    await untilCommitting(world.db);
    const revoked = await organisation.ask('POST', `/owner/agents/${agent.agentId}/revoke`, {});
    const made = await making;
    expect([revoked.status, made.status < 300], made.text).toEqual([200, true]);
    const { rows } = await sql<{ ended: boolean }>`select ${isEnded} as ended from ${sql.table(table)}`.execute(
      world.db,
    );
    expect(rows).toEqual([{ ended: true }]);
  });

  test('gets no secret from a replica whose clock is behind', async () => {
    const organisation = await world.demoOrganisation();
    const agent = await organisation.agent();
    const asked = { agent: agent.agentId, platform: 'demo' };
    const { authorization } = (await organisation.ask('POST', '/owner/secret-authorizations', asked)).body;
    const [key] = (await send(`${world.running.baseUrl}/.well-known/svc-secret-keys.json`, {})).body.keys;
    const sealed = await new CompactEncrypt(
      Buffer.from(JSON.stringify({ authorization, secret: 'a-long-enough-secret' })),
    )
      .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A256GCM', kid: key.kid })
      .encrypt(await importJWK(key, 'ECDH-ES'));
    await slowCommits(world.db, 'agents', 'update');
    const revoking = organisation.ask('POST', `/owner/agents/${agent.agentId}/revoke`, {});
    await untilCommitting(world.db);
    world.clock.skewMs -= 10_000;
    onTestFinished(() => {
      world.clock.skewMs += 10_000;
    });
    const bound = await send(
      `${world.running.baseUrl}/v1/bind-secret`,
      jsonPost({ agent_id: agent.agentId, platform_id: 'demo', encrypted_secret: sealed }),
    );
    expect((await revoking).status).toBe(200);
    expectEnvelope(bound, 400, 'invalid_request');
    const { connections } = (await organisation.ask('GET', '/owner/connections')).body;
    expect(connections.map(({ label }: { label: string }) => label)).toEqual(['demo-main']);
  });
});
