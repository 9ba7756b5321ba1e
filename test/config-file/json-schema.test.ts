import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { schemasAt } from '../../broker/config-file/allowed.ts';
import { governanceJsonSchema, type JsonSchema } from '../../broker/config-file/json-schema.ts';

const shipped = JSON.parse(
  readFileSync(new URL('../../governance.schema.json', import.meta.url), 'utf8'),
) as JsonSchema;

describe('governance.schema.json', () => {
  it('equals the schema of the code (otherwise run: node broker/config-file/write-json-schema.ts)', () => {
    expect(shipped).toEqual(JSON.parse(JSON.stringify(governanceJsonSchema())));
  });

  it('describes every section, and allows no other', () => {
    expect(Object.keys(shipped.properties!)).toEqual([
      'organisation',
      'publish_identity_documents',
      'auto_suspend',
      'retention',
      'passkey_deciders',
      'owners',
      'platforms',
      'caller_issuers',
      'connections',
      'channels',
      'audit_sinks',
      'policies',
      'guardrails',
      'agents',
    ]);
    expect(shipped.additionalProperties).toBe(false);
    for (const [name, section] of Object.entries(shipped.properties!))
      expect([name, section.description]).toEqual([name, expect.any(String)]);
  });

  it.each([
    [['agents', 'x', 'grants', 'y']],
    [['connections', 'x']],
    [['policies', 'x', 'rules', 0]],
    [['guardrails', 0]],
    [['owners', 0]],
    [['agents', 'x']],
  ])('describes every member at %j', (path) => {
    const objects = schemasAt(shipped, path).filter((schema) => schema.properties);
    expect(objects.length).toBeGreaterThan(0);
    for (const { properties, additionalProperties } of objects) {
      expect(additionalProperties).toBe(false);
      for (const [name, member] of Object.entries(properties!))
        expect([name, member.description]).toEqual([name, expect.any(String)]);
    }
  });
});
