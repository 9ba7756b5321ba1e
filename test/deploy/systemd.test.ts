/** The systemd unit. */
import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readConfig } from '../../broker/environment/config.ts';
import { ROOT } from '../world/checkout.ts';
import { newFolder } from '../world/stores.ts';

const UNIT = join(ROOT, 'deploy', 'systemd', 'agent-broker.service');
const text = readFileSync(UNIT, 'utf8');
/** The values of a key, in order. */
const valuesOf = (key: string): string[] =>
  [...text.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value = '']) => value);
const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0;

describe('the systemd unit', () => {
  test('sets variables that the broker reads, and keeps its key outside the folder that is backed up', () => {
    const places: Record<string, string> = { '%S': '/var/lib', '%d': '/run/credentials/agent-broker.service' };
    const set = valuesOf('Environment').map((one) => one.replaceAll(/%[Sd]/g, (name) => places[name]!));
    const example = readFileSync(join(ROOT, 'deploy/systemd/broker.env.example'), 'utf8');
    const given = [...example.matchAll(/^#?([A-Z_]+=.*)$/gm)].map(([, one = '']) => one);
    const environment = Object.fromEntries([...set, ...given].map((one) => one.split(/=(.*)/s) as [string, string]));
    const config = readConfig(environment);
    const [folder = ''] = valuesOf('StateDirectory');
    expect(config.dataFolder).toBe(join('/var/lib', folder));
    const [credential = ''] = valuesOf('LoadCredential');
    expect(config.keyFile).toBe(join(places['%d']!, credential.split(':')[0]!));
    expect(config.keyFile.startsWith(config.dataFolder)).toBe(false);
    expect(Number(valuesOf('TimeoutStopSec'))).toBeGreaterThanOrEqual(config.drainSeconds! + 20);
    expect(config.databaseUrl).toBeDefined();
  });

  test.runIf(hasSystemd)('passes systemd-analyze verify, and has a low exposure level', () => {
    const copy = join(newFolder(), 'agent-broker.service');
    // `systemd-analyze verify` checks that the program exists, and the broker is not installed here.
    const runnable = (unit: string) => unit.replace(/^ExecStart=\S+/m, `ExecStart=/bin/sh`);
    const verify = () => spawnSync('systemd-analyze', ['verify', '--man=no', copy], { encoding: 'utf8' });
    writeFileSync(copy, runnable(text).replace('RestartSec', 'RestartSecs'));
    expect(verify().stderr).toContain('RestartSecs');
    writeFileSync(copy, runnable(text));
    expect(verify().stderr).toBe('');
    copyFileSync(UNIT, copy);
    const judged = execFileSync('systemd-analyze', ['security', '--offline=true', '--threshold=20', copy], {
      encoding: 'utf8',
    });
    expect(judged).toMatch(/Overall exposure level for agent-broker\.service: [01]\.\d OK/);
  });
});
