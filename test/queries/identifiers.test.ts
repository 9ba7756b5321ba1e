import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { newAgentId, uuidv4 } from '../../broker/crypto/ids.ts';
import { readAuthority, readEntity } from '../../broker/queries/identifiers.ts';

const label = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?$/);
const domain = fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => labels.join('.'));
const port = fc.option(fc.integer({ min: 0, max: 65_535 }), { nil: undefined });
const agentId = fc.constant(0).map(newAgentId);
const uuid = fc.constant(0).map(uuidv4);
const colon = fc.constantFrom('%3A', '%3a', ':');

describe('names of TRQP', () => {
  test('are parsed in all their forms', () => {
    fc.assert(
      fc.property(domain, port, colon, agentId, uuid, (name, number, separator, agent, organisationId) => {
        const host = number === undefined ? name : `${name}:${number}`;
        const did = number === undefined ? `did:web:${name}` : `did:web:${name}${separator}${number}`;
        expect(readEntity(agent)).toEqual({ agentId: agent });
        expect(readEntity(`${did}:agents:${agent}`)).toEqual({ host, agentId: agent });
        expect(readEntity(`did:web:${did.slice(8).toUpperCase().replace('%3a', '%3A')}:agents:${agent}`)).toEqual({
          host,
          agentId: agent,
        });
        expect(readEntity(`spiffe://${host}/orgs/${organisationId}/agents/${agent}`)).toEqual({
          host,
          agentId: agent,
          organisationId,
        });
        expect(readAuthority(did)).toEqual({ host, root: true });
        expect(readAuthority(`${did}:orgs:${organisationId.toUpperCase()}`)).toEqual({
          host,
          root: false,
          organisationId,
        });
      }),
    );
  });

  test('are parsed or refused for any text, and a parsed agent id is well-formed', () => {
    const parts = fc.constantFrom(
      'did:web:',
      'spiffe://',
      'agt_',
      ':agents:',
      ':orgs:',
      '/',
      '..',
      '%3A',
      ':',
      'a',
      '.',
      '-',
    );
    const anything = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.array(parts).map((all) => all.join('')),
    );
    fc.assert(
      fc.property(anything, (text) => {
        const entity = readEntity(text);
        if (entity?.agentId !== undefined) expect(entity.agentId).toMatch(/^agt_[a-z0-9]{20,21}$/);
        if (entity?.host !== undefined) expect(entity.host).toMatch(/^[a-z0-9._-]+(:\d+)?$/);
        readAuthority(text);
      }),
      { numRuns: 1_000 },
    );
  });

  test.each([
    ['a'.repeat(16_000)],
    ['a-'.repeat(8_000)],
    ['a.'.repeat(8_000)],
    ['a:'.repeat(8_000)],
    ['a1:'.repeat(5_000)],
    [':1'.repeat(8_000)],
    [`a${'%41'.repeat(5_000)}`],
    ['/a'.repeat(8_000)],
    ['/..'.repeat(5_000)],
  ])('are parsed in linear time, however long (%#)', (filling) => {
    const started = process.cpuUsage();
    for (const start of ['did:web:', 'did:web:a', 'spiffe://', 'spiffe://a', ''])
      for (const end of ['', '!', ':', '-']) {
        readEntity(start + filling + end);
        readAuthority(start + filling + end);
      }
    expect(process.cpuUsage(started).user / 1_000, 'milliseconds of CPU for 40 of them').toBeLessThan(200);
  });
});
