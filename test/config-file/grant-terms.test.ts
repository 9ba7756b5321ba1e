import { describe, expect, test } from 'vitest';
import { expectStatus, makeKeyPair } from '../world/agent.ts';
import { thorough } from '../world/runner/thorough.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { givenWorld } from '../world/world.ts';
import { ByFile } from './world-from-file.ts';

const KEYS = makeKeyPair();
const MESSAGE = {
  platform: 'crm',
  endpoint: '/messages',
  method: 'POST',
  scope: 'crm:write',
  data: { to: 'eve@evil.example' },
};
const READ = { platform: 'crm', endpoint: '/messages', method: 'GET', scope: 'crm:read' };
const SECOND = { platform: 'codehost', endpoint: '/repos/acme/two', method: 'GET', scope: 'codehost:read' };
const CREATE = {
  platform: 'codehost',
  endpoint: '/orgs/acme/repos',
  method: 'POST',
  scope: 'codehost:create',
  data: { name: 'x' },
};
const COMMIT = {
  platform: 'codehost',
  endpoint: '/repos/acme/one/contents/a',
  method: 'PUT',
  scope: 'codehost:write',
  data: { branch: 'main' },
};
const MAIN = 'Bearer CANARY-main-0123456789';
const OTHER = 'Bearer CANARY-other-0123456789';

type Row = {
  field: string;
  platform: 'crm' | 'codehost';
  before: Record<string, unknown>;
  after: Record<string, unknown>;
  call: Record<string, unknown>;
  was: unknown;
  is: unknown;
  detail: string;
};
const CRM = { scopes: ['crm:read', 'crm:write'], connection: 'main' };
const HUB = {
  scopes: ['codehost:read', 'codehost:create', 'codehost:write'],
  repos: ['acme/*'],
  allow_repo_creation: true,
};
const SENT = { status: 200, credential: MAIN };
const refused = (reason: string) => ({ status: 403, reason, credential: undefined });

const ROWS: Row[] = [
  {
    field: 'scopes',
    platform: 'crm',
    before: CRM,
    after: { ...CRM, scopes: ['crm:read'] },
    call: MESSAGE,
    was: SENT,
    is: refused('scope_not_granted'),
    detail: 'scopes: − crm:write',
  },
  {
    field: 'require_approval',
    platform: 'crm',
    before: CRM,
    after: { ...CRM, require_approval: true },
    call: MESSAGE,
    was: SENT,
    is: { status: 202, credential: undefined },
    detail: 'require_approval: false → true',
  },
  {
    field: 'recipients',
    platform: 'crm',
    before: CRM,
    after: { ...CRM, recipients: ['@acme.example'] },
    call: MESSAGE,
    was: SENT,
    is: refused('recipient_not_allowed'),
    detail: 'recipients: anybody → @acme.example',
  },
  {
    field: 'connection',
    platform: 'crm',
    before: CRM,
    after: { ...CRM, connection: 'other' },
    call: READ,
    was: SENT,
    is: { status: 200, credential: OTHER },
    detail: 'connection: main → other',
  },
  {
    field: 'repos',
    platform: 'codehost',
    before: HUB,
    after: { ...HUB, repos: ['acme/one'] },
    call: SECOND,
    was: SENT,
    is: refused('repo_not_allowed'),
    detail: 'repos: − acme/*, + acme/one',
  },
  {
    field: 'allow_repo_creation',
    platform: 'codehost',
    before: HUB,
    after: { ...HUB, allow_repo_creation: false },
    call: CREATE,
    was: SENT,
    is: refused('repo_not_allowed'),
    detail: 'allow_repo_creation: true → false',
  },
  {
    field: 'refs',
    platform: 'codehost',
    before: HUB,
    after: { ...HUB, refs: ['agent/*'] },
    call: COMMIT,
    was: SENT,
    is: refused('repo_not_allowed'),
    detail: 'refs: all → agent/*',
  },
  {
    field: 'ref_changes',
    platform: 'codehost',
    before: { ...HUB, ref_changes: ['create', 'update'] },
    after: { ...HUB, ref_changes: ['create'] },
    call: COMMIT,
    was: SENT,
    is: refused('repo_not_allowed'),
    detail: 'ref_changes: − update',
  },
];

describe.each(ONE_STORE)(`a change of a single field of a grant's terms by a file, on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);

  const document = (platform: string, terms: object) => ({
    platforms: {
      crm: {
        kind: 'rest',
        base_url: world.upstream.url,
        auth: { type: 'bearer' },
        scopes: { 'crm:read': ['GET /**'], 'crm:write': ['POST /**'] },
        recipients: { 'POST /messages': ['/to'] },
      },
      codehost: {
        kind: 'rest',
        base_url: world.upstream.url,
        auth: { type: 'bearer' },
        scopes: {
          'codehost:read': ['GET /repos/**'],
          'codehost:create': ['POST /orgs/*/repos'],
          'codehost:write': ['PUT /repos/*/*/contents/**'],
        },
        refs: {
          'PUT /repos/*/*/contents/**': [{ in: 'body', at: '/branch', prefix: 'refs/heads/', action: 'update' }],
        },
      },
    },
    connections: {
      main: { platform: 'crm', secret: { env: 'MAIN' }, default: true },
      other: { platform: 'crm', secret: { env: 'OTHER' } },
      hub: { platform: 'codehost', secret: { env: 'MAIN' } },
    },
    policies: { open: { rules: [{ effect: 'allow' }] } },
    agents: { triage: { policy: 'open', public_key: { pem: KEYS.publicPem }, grants: { [platform]: terms } } },
  });

  // Each field with one of these expiries, and with all of them in a thorough run.
  const ends = [undefined, '30d', '2999-01-31T18:00:00Z'];
  const cases = ROWS.flatMap((row, at) =>
    (thorough ? ends : [ends[at % ends.length]]).map((expires) => ({ ...row, expires })),
  );
  test.each(cases)('$field applies from the next call on, in both directions (expires: $expires)', async (row) => {
    const governed = await ByFile.make(world, new Map([['triage', KEYS]]));
    const said = (terms: object) => document(row.platform, { ...terms, ...(row.expires && { expires: row.expires }) });
    await governed.apply(said(row.before));
    expect(await governed.call('triage', row.call)).toMatchObject(row.was as object);
    const [change, ...others] = await governed.apply(said(row.after));
    expect([change, others]).toEqual([
      expect.objectContaining({ action: 'update', kind: 'grant', details: [row.detail] }),
      [],
    ]);
    expect(await governed.call('triage', row.call)).toMatchObject(row.is as object);
    expect(await governed.apply(said(row.before))).toHaveLength(1);
    expect(await governed.call('triage', row.call)).toMatchObject(row.was as object);
  });

  test.each(ends)('a change by an owner is reverted by applying the file again (expires: %s)', async (expires) => {
    const governed = await ByFile.make(world, new Map([['triage', KEYS]]));
    const file = document('crm', { ...CRM, scopes: ['crm:read'], ...(expires && { expires }) });
    await governed.apply(file);
    const [agent] = (await governed.agents()).values();
    const path = `/owner/agents/${agent!.agentId}/grants/crm`;
    await expectStatus(200, governed.organisation.ask('POST', path, { scopes: ['crm:read', 'crm:write'] }));
    expect(await governed.call('triage', MESSAGE)).toMatchObject(SENT);
    expect(await governed.apply(file)).toHaveLength(1);
    expect(await governed.call('triage', MESSAGE)).toMatchObject(refused('scope_not_granted'));
  });
});
