import { describe, expect, it } from 'vitest';
import { DEFAULT_POLICY_RULES } from '../../broker/policy/default-policy.ts';
import { findPolicyRules } from '../../broker/store/governed-versions.ts';
import { postgresNote, STORES } from '../world/stores.ts';
import { Governed, makeOrganisation, openBroker } from './governance-world.ts';

describe.each(STORES)(`a new organisation on %s${postgresNote}`, async (kind) => {
  const broker = await openBroker(kind);

  it('has one admin and the policy default, and equals an empty file', async () => {
    const { organisation, owner } = await makeOrganisation(broker, `new ${kind}`, 'Ann@Acme.example', 42);
    expect(organisation).toMatchObject({
      guardrails_version: 0,
      publish_identity_documents: 0,
      approval_ttl_ms: 86_400_000,
      created_at: 42,
    });
    expect(owner).toMatchObject({ email: 'ann@acme.example', role: 'admin', origin: 'first_start' });
    const world = new Governed(broker, organisation.id);
    const { policies } = await world.present();
    expect([...policies.keys()]).toEqual(['default']);
    const rules = await findPolicyRules(broker.store.db, organisation.id, policies.get('default')!.id, 1);
    expect(JSON.parse(rules!)).toEqual(DEFAULT_POLICY_RULES);
    expect((await world.plan('agents: {}\npolicies: {}\nowners: []\nplatforms: {}\nguardrails: []')).changes).toEqual(
      [],
    );
  });

  it('is created completely or not at all', async () => {
    await expect(makeOrganisation(broker, 'half', null as unknown as string, 1)).rejects.toThrow();
    await expect(makeOrganisation(broker, 'half', 'a@b.example', 1)).resolves.toBeDefined();
  });
});
