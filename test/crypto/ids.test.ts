import { describe, expect, it } from 'vitest';
import { AGENT_ID_PATTERN, correlationId, newAgentId, UUID_PATTERN, uuidv4, uuidv7 } from '../../broker/crypto/ids.ts';

const NOW = Date.parse('2026-03-01T12:00:00.123Z');

describe('uuidv7', () => {
  it('equals the example of RFC 9562, appendix A.6, except for its random part', () => {
    const id = uuidv7(Date.parse('2022-02-22T14:22:22-05:00'));
    expect(id).toMatch(/^017f22e2-79b0-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  it('sorts by time as text', () => {
    const ids = [0, 1, 2, 255, 256, 65_536, 2 ** 32].map((offset) => uuidv7(NOW + offset));
    expect(ids.toSorted()).toEqual(ids);
  });

  it('is unique within one millisecond', () => {
    expect(new Set(Array.from({ length: 20_000 }, () => uuidv7(NOW))).size).toBe(20_000);
  });
});

describe('random ids', () => {
  it('are version 4 UUIDs', () => {
    expect(uuidv4()).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(correlationId()).toMatch(UUID_PATTERN);
    expect(new Set([uuidv4(), uuidv4(), correlationId(), correlationId()]).size).toBe(4);
  });
});

describe('agent ids', () => {
  const ids = Array.from({ length: 18_000 }, newAgentId);

  it('have the form of the specification, and are unique', () => {
    for (const id of ids) expect(id).toMatch(/^agt_[a-z0-9]{20}$/);
    expect(AGENT_ID_PATTERN.test(ids[0]!)).toBe(true);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('use every character equally often', () => {
    const counts = new Map<string, number>();
    for (const id of ids) for (const char of id.slice(4)) counts.set(char, (counts.get(char) ?? 0) + 1);
    expect(counts.size).toBe(36);
    // Expected are 10,000 of each, with a standard deviation of 99; a plain `% 36` of a byte would give 11,250 for some.
    for (const count of counts.values()) expect(Math.abs(count - 10_000)).toBeLessThan(700);
  });
});
