/** Secrets of a running broker are not shown to a person who can signal the process or read its crash reports. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { BIN } from '../world/checkout.ts';
import { afterFile } from '../world/runner/after-file.ts';
import { newDatabase, newFolder, postgresNote, STORES } from '../world/stores.ts';

/** Runs `serve` with secrets in its environment, and resolves once it serves. */
async function serving(environment: Record<string, string>, flags: readonly string[] = []) {
  const child = spawn(process.execPath, [...flags, BIN, 'serve', '--no-sandbox'], {
    env: {
      PATH: process.env.PATH ?? '',
      PORT: '0',
      DRAIN_SECONDS: '0',
      AGENT_BROKER_DATA: newFolder(),
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = new Promise((done) => child.once('close', done));
  afterFile(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const output = { text: '' };
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output.text += text;
    });
  const url = async () => /running at (http:\/\/\S+)/.exec(output.text)?.[1];
  await expect.poll(url, { timeout: 20_000 }).toBeDefined();
  return { child, output, url: (await url())! };
}

/** On a signal, prints the content of a crash report, and the environment that child processes get. */
const REPORT = `process.on('SIGUSR2', () => process.stderr.write('REPORT ' + JSON.stringify({ ...process.report.getReport(), environment: process.env }) + '\\n'))`;

const secret = () => randomBytes(24).toString('hex');

describe.runIf(STORES.includes('postgres'))(`secrets of a running broker${postgresNote}`, () => {
  test('KEY-05 crash reports and child processes get no secrets from the environment', async () => {
    const reports = newFolder();
    const [metrics, redis, oidc, otel, proxy] = [secret(), secret(), secret(), secret(), secret()];
    const database = new URL(await newDatabase());
    database.searchParams.set('application_name', secret());
    const standby = new URL(database);
    standby.searchParams.set('application_name', secret());
    const key = randomBytes(32).toString('base64');
    const { child, output, url } = await serving(
      {
        AGENT_BROKER_MASTER_KEY: key,
        DATABASE_URL: database.href,
        DATABASE_READ_URL: standby.href,
        RATE_LIMIT_URL: `redis://:${redis}@127.0.0.1:9`,
        OUTBOUND_PROXY: `http://broker:${proxy}@127.0.0.1:9`,
        METRICS_TOKEN: metrics,
        OIDC_ISSUER: 'http://127.0.0.1:9',
        OIDC_CLIENT_ID: 'broker',
        OIDC_CLIENT_SECRET: oidc,
        OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
        OTEL_EXPORTER_OTLP_HEADERS: `authorization=${otel}`,
      },
      // The broker itself writes no report, whatever its flags (no-dumps.test.ts).
      [
        '--import',
        `data:text/javascript,${encodeURIComponent(REPORT)}`,
        '--report-on-signal',
        `--report-directory=${reports}`,
      ],
    );
    child.kill('SIGUSR2');
    const line = () => /^REPORT (.*)$/m.exec(output.text)?.[1];
    await expect.poll(line, { timeout: 20_000 }).toBeDefined();
    expect(readdirSync(reports)).toEqual([]);
    const report = JSON.parse(line()!);
    expect(report.environment.AGENT_BROKER_DATA).toBeDefined();
    const text = JSON.stringify(report);
    const [inDatabase, inStandby] = [database, standby].map(
      ({ searchParams }) => searchParams.get('application_name')!,
    );
    const secrets = { key, metrics, redis, oidc, otel, proxy, inDatabase: inDatabase!, inStandby: inStandby! };
    expect(
      Object.entries(secrets)
        .filter(([, value]) => text.includes(value))
        .map(([name]) => name),
    ).toEqual([]);
    expect((await fetch(`${url}/livez`)).status).toBe(200);
  });

  test('CX-12 a signal does not open the inspector', async () => {
    const { child, output, url } = await serving({});
    let isOver = false;
    onTestFinished(() => {
      isOver = true;
    });
    for (let signals = 0; signals < 5 && !isOver; signals++) {
      child.kill('SIGUSR1');
      expect((await fetch(`${url}/livez`)).status).toBe(200);
    }
    await new Promise((done) => setTimeout(done, 300));
    expect(output.text).not.toMatch(/debugger/i);
    expect(child.exitCode).toBeNull();
  });
});
