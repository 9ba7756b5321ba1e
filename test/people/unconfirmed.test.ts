/** A person gave new tokens because the previous ones cannot be used: calls wait for an owner's confirmation, and do not ask the person again. */
import { describe, expect, test } from 'vitest';
import { findAuditRow } from '../../broker/store/audit.ts';
import { type Answer, expectStatus } from '../world/agent.ts';
import { docsManifest, govern } from '../world/docs-platform.ts';
import { STDIO } from '../world/mcp/people.ts';
import { agentOfPeople, confirmAll, consentAsserted, outlivePerson } from '../world/people.ts';
import { givenPeople, slack } from '../world/people-world.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';

const ANN = slack('U-ANN');
const WRITE = { method: 'POST', scope: 'docs:write', data: { title: 'x' } };

describe.each(ONE_STORE)(`tokens that replace others once an owner confirms them, on %s${postgresNote}`, (store) => {
  const { server, world, organisation, agent, act, document, connected } = givenPeople(store);

  async function giveAgain(): Promise<void> {
    const started = await expectStatus(202, agent.post('/v1/consent/caller/start', { platform: 'docs', caller: ANN }));
    await consentAsserted(server, started.body.consent_url, 'ann');
  }
  /** Makes the refresh token refused from now on. */
  async function lapse(): Promise<void> {
    await outlivePerson(world, organisation, 'ann@docs.example');
    server.instead = (path) => (path === '/token' ? { status: 400, body: '{"error":"invalid_grant"}' } : undefined);
    expect((await act(ANN)).body.error).toBe('platform_reauth_needed');
    server.instead = undefined;
  }
  const waitsForOwner = ({ status, body, text }: Answer) => {
    expect([status, body.error, body.reason, body.consent_url], text).toEqual([
      412,
      'consent_required',
      'not_consented',
      undefined,
    ]);
    expect(body.message).toBe(
      'This person has connected the platform. An owner has to confirm that before it is used.',
    );
  };

  test('when the previous tokens were revoked at the platform, calls wait for the owner', async () => {
    await connected(ANN, 'ann');
    await lapse();
    await giveAgain();
    waitsForOwner(await act(ANN));
    await confirmAll(organisation);
    expect((await act(ANN)).status).toBe(200);
  });

  test('when the previous tokens lack a scope, only calls that need it wait for the owner', async () => {
    const perPerson = { enabled: true, asserted: ['slack'] };
    const docs = docsManifest(server, { per_person: perPerson, needs: { 'docs:write': ['docs.write'] } });
    expect((await govern(organisation, document({ platforms: { docs } }))).status).toBe(200);
    await connected(ANN, 'ann');
    await consentAsserted(server, (await act(ANN, WRITE)).body.consent_url, 'ann');
    waitsForOwner(await act(ANN, WRITE));
    expect((await act(ANN)).status).toBe(200);
    await confirmAll(organisation);
    expect((await act(ANN, WRITE)).status).toBe(200);
  });

  test('when the platform refused the previous tokens, the audit row says that the call was sent', async () => {
    await connected(ANN, 'ann');
    await giveAgain();
    server.instead = (path) => (path === '/api/items' ? { status: 401, body: '{}' } : undefined);
    expect((await act(ANN)).body.data).toEqual({});
    const refused = await act(ANN, WRITE);
    waitsForOwner(refused);
    const row = await findAuditRow(world.db, organisation.id, refused.body.audit_id);
    expect(row).toMatchObject({ result: 'errored', reason: 'consent_required', upstream_status: 401 });
  });

  test('a held call is not made with the previous tokens, and its error says why', async () => {
    const held = await agentOfPeople(organisation, [{ effect: 'require_approval' }]);
    await connected(ANN, 'ann');
    const { approval_id: id } = (await act(ANN, WRITE, held)).body;
    await lapse();
    await giveAgain();
    await expectStatus(200, organisation.approve(id));
    const { body } = await held.get(`/v1/approvals/${id}?wait=30`);
    expect(body.execution_error).toContain('An owner has to confirm');
  });

  test('an MCP tool says that an owner has to confirm, and does not show another link', async () => {
    await organisation.ask('POST', '/owner/policies/default', { rules: [{ effect: 'allow' }] });
    await connected(ANN, 'ann');
    await lapse();
    await giveAgain();
    const call = await STDIO(world, organisation);
    const answer = await call('read_platform', {
      platform: 'docs',
      scope: 'docs:read',
      endpoint: '/items',
      caller: ANN,
    });
    expect(answer).toMatchObject({ status: 'not_ready', code: 'consent_required' });
    expect(answer.detail).toContain('An owner has to confirm');
    expect(answer.consent_url).toBeUndefined();
  });
});
