/** The goals for speed and memory, each with the value of this run. */
import { ROWS_OF_PUSHES } from './git.ts';
import { median, paired, quantile, type Sample, typical } from './measure.ts';
import type { Findings } from './plan.ts';
import { LARGE_MIB } from './raw-streams.ts';
import { NAMES } from './stage.ts';

/** `met` is undefined when the value could not be measured here. */
export type Goal = { name: string; target: string; measured: string; met: boolean | undefined };

const MEGABYTE = 1_000_000;

/** Returns one row for each goal and store, in the order of the documentation. */
export function judge(findings: Findings): Goal[] {
  const { many, one, answers, streams, brokers } = findings;
  const goals: Goal[] = [];
  const add = (name: string, target: string, value: number, show: (value: number) => string, met: boolean) => {
    const measurable = Number.isFinite(value);
    goals.push({
      name,
      target,
      measured: measurable ? show(value) : 'not measured',
      met: measurable ? met : undefined,
    });
  };
  const of = (name: string): Sample[] => many.get(name) ?? [];
  const slowest = Math.max(...answers.map(({ micros }) => median(micros))) / 1_000;
  add('search for the credential in 10 MiB, slowest', '≤ 1000 ms', slowest, milliseconds, slowest <= 1_000);
  // Bytes per microsecond are MB per second.
  const rates = streams.map(({ bytes, micros }) => bytes / median(micros) / 1_000);
  const searched = Math.min(...rates);
  add(
    'search for the credential in a stream, slowest, a core',
    '≥ 1 GB/s',
    searched,
    (rate) => `${rate.toFixed(2)} GB/s`,
    searched >= 1,
  );
  const rateShare = (a: Sample, b: Sample) => a.rate / b.rate;

  for (const [store, found] of brokers) {
    const governed = of(found.governed);
    const decisions = of(found.decisions);
    const ofForwarder = paired(governed, of(NAMES.forwarder), rateShare);
    add(`governed reads of the bare forwarder, ${store}`, '≥ 30 %', ofForwarder, percent, ofForwarder >= 0.3);
    const ofNginx = paired(governed, of(NAMES.nginx), rateShare);
    add(`governed reads of nginx, ${store}`, '≥ 10 %', ofNginx, percent, ofNginx >= 0.1);
    const lone = one.get(found.governed) ?? [];
    const added = paired(lone, one.get(NAMES.nginx) ?? [], (a, b) => a.latency.p50 - b.latency.p50);
    add(`p50 added over nginx at 1 connection, ${store}`, '≤ 1 ms', added, milliseconds, added <= 1);
    const ofCalls = paired(of(found.raw), governed, rateShare);
    add(`raw reads of governed reads, ${store}`, '≥ 100 %', ofCalls, percent, ofCalls >= 1);
    const rawAdded = paired(
      one.get(found.raw) ?? [],
      one.get(NAMES.nginx) ?? [],
      (a, b) => a.latency.p50 - b.latency.p50,
    );
    add(
      `p50 added by a raw read over nginx at 1 connection, ${store}`,
      '≤ 1 ms',
      rawAdded,
      milliseconds,
      rawAdded <= 1,
    );
    const tail = typical(governed, ({ latency }) => latency.p99 / latency.p50);
    add(`p99 of p50 at 32 connections, ${store}`, '≤ 5 times', tail, (value) => `${value.toFixed(1)} times`, tail <= 5);
    const decided = paired(decisions, of(NAMES.nginx), rateShare);
    add(`decisions of nginx, ${store}`, '≥ 18 %', decided, percent, decided >= 0.18);
    for (const [what, samples] of [
      ['decisions', decisions],
      ['AuthZEN decisions', of(found.authzen)],
      ['TRQP decisions', of(found.trqp)],
    ] as const) {
      const rate = typical(samples, (sample) => sample.rate);
      add(`${what}, ${store}`, '≥ 10,000/s', rate, (value) => `${thousands(value)}/s`, rate >= 10_000);
    }
    const grown = growth(found.scale);
    add(`CPU a call, most agents over fewest, ${store}`, '≤ +20 %', grown, signedPercent, grown <= 0.2);
    const cost = typical(governed, ({ cpuMicros }) => cpuMicros);
    add(`CPU of a governed read, ${store}`, '≤ 170 µs', cost, (value) => `${value.toFixed(0)} µs`, cost <= 170);
    const rest = found.atRest / MEGABYTE;
    add(`memory at rest, ${store}`, '≤ 130 MB', rest, (value) => `${value.toFixed(0)} MB`, rest <= 130);
    const peak = Math.max(...found.memory.map(({ bytes }) => bytes)) / MEGABYTE;
    add(`memory under load, ${store}`, '≤ 300 MB', peak, (value) => `${value.toFixed(0)} MB`, peak <= 300);
    const flat = flatness(found.memory);
    add(
      `memory grown in the second half of ${thousands(found.memory.at(-1)?.calls ?? 0)} calls, ${store}`,
      '≤ +10 %',
      flat,
      signedPercent,
      flat <= 0.1,
    );
    const start = found.healthAfterMs / 1_000;
    add(`/health after the start, ${store}`, '≤ 2 s', start, (value) => `${value.toFixed(2)} s`, start <= 2);
    const { waiting } = found;
    if (waiting) {
      const who = `${thousands(waiting.agents)} agents that wait`;
      const megabytes = waiting.bytes / MEGABYTE;
      add(`memory of ${who}, ${store}`, '≤ 250 MB', megabytes, (value) => `${value.toFixed(0)} MB`, megabytes <= 250);
      const more = waiting.statements.waiting - waiting.statements.alone;
      add(`statements for ${who}, ${store}`, '≤ 1/s', more, (value) => `${value.toFixed(1)}/s`, more <= 1);
      const latest = Math.max(...waiting.decided);
      add(`decision to the agent's answer, slowest, ${store}`, '≤ 100 ms', latest, milliseconds, latest <= 100);
      const shown = Math.max(...waiting.shown);
      add(`202 to the owner's page, slowest, ${store}`, '≤ 1000 ms', shown, milliseconds, shown <= 1_000);
    }
    const { mcp } = found;
    if (mcp) {
      const bare = quantile(mcp.bareTogether, 0.95).toFixed(0);
      for (const [from, { alone, together }] of [
        ['the package', mcp.built],
        ['a checkout', mcp.checkout],
      ] as const) {
        const listed = median(alone);
        add(`tools/list of the MCP server from ${from}, median`, '≤ 250 ms', listed, milliseconds, listed <= 250);
        const six = quantile(together, 0.95);
        // Codex waits 600 ms for the tools of its servers, then starts without them.
        const name = `the same, six at once, 95th percentile (six bare Nodes: ${bare} ms)`;
        add(name, '≤ 450 ms', six, milliseconds, six <= 450);
      }
      const added = median(mcp.added);
      add('added by the MCP server to a governed call, median', '≤ 5 ms', added, milliseconds, added <= 5);
      const megabytes = mcp.atRest / MEGABYTE;
      add(
        'memory of the MCP server at rest',
        '< 80 MB',
        megabytes,
        (value) => `${value.toFixed(1)} MB`,
        megabytes < 80,
      );
    }
    const { sidecar } = found;
    if (sidecar) {
      const added = median(sidecar.added);
      add('added by the sidecar of run to a raw read, median', '≤ 2 ms', added, milliseconds, added <= 2);
      const megabytes = sidecar.atRest / MEGABYTE;
      const show = (value: number) => `${value.toFixed(1)} MB`;
      add('memory of the sidecar at rest', '< 80 MB', megabytes, show, megabytes < 80);
    }
    const { rawStreams } = found;
    if (rawStreams) {
      const { late, grown, streams } = rawStreams;
      for (const [which, name] of [
        ['get', 'first event of a GET'],
        ['post', 'first event of a POST'],
        ['next', 'further events'],
      ] as const) {
        const later = median(late.broker[which]) - median(late.upstream[which]);
        add(`${name} after the upstream's, median`, '≤ 1.5 ms', later, milliseconds, later <= 1.5);
      }
      const show = (bytes: number) => `${(bytes / MEGABYTE).toFixed(0)} MB`;
      const name = `memory grown by bodies of ${LARGE_MIB} MiB, down and up`;
      add(name, '≤ 64 MB', grown.large, show, grown.large <= 64 * MEGABYTE);
      add(
        `memory grown by ${streams.count} streams of ${streams.seconds} s at the same time (${thousands(streams.events)} events)`,
        '≤ 64 MB',
        grown.streams,
        show,
        grown.streams <= 64 * MEGABYTE,
      );
    }
    const { streams: packs, pushes } = found.git ?? {};
    if (packs) {
      for (const what of ['clone', 'push'] as const) {
        const share = median(packs[what].broker) / median(packs[what].nginx);
        add(`${what} of 500 MiB, of nginx`, '≥ 80 %', share, percent, share >= 0.8);
      }
      const { large, clones } = packs.grown;
      const show = (bytes: number) => `${(bytes / MEGABYTE).toFixed(0)} MB`;
      add('memory grown by clones and pushes of 500 MiB', '≤ 64 MB', large, show, large <= 64 * MEGABYTE);
      add('memory grown by 20 clones of 50 MiB at once', '≤ 64 MB', clones, show, clones <= 64 * MEGABYTE);
      const later = quantile(packs.refs.broker, 0.5) - quantile(packs.refs.nginx, 0.5);
      add('p50 added to info/refs over nginx', '≤ 1.5 ms', later, milliseconds, later <= 1.5);
    }
    if (pushes) {
      const fast = `${thousands(quantile(pushes.latency, 0.5))} ms in the middle`;
      const name = `pushes of 10 KB in chunks, recorded (${fast}), ${store}`;
      const kept = pushes.failed === 0 && pushes.rows === ROWS_OF_PUSHES;
      // The last pushes end a moment after the period in which all are started.
      add(name, '≥ 99/s, no row missing', pushes.rate, (value) => `${value.toFixed(1)}/s`, pushes.rate >= 99 && kept);
    }
    const { answered, sent, rows, verified, failed } = found.audit;
    // A call that was sent, but whose answer the generator did not read any more, may have a row, too.
    const audited = rows >= answered && rows <= sent;
    add(`audit rows for ${thousands(answered)} calls, ${store}`, 'one each', rows, thousands, audited);
    add(`receipts verified, ${store}`, 'every one', verified, thousands, failed === 0 && verified >= rows);
  }
  return goals;
}

/** Returns the share by which the CPU time per call grows from the fewest to the most stored agents; NaN for fewer than two scales. */
function growth(scale: readonly { samples: Sample[] }[]): number {
  const [fewest, most] = [scale.at(0), scale.at(-1)];
  if (!fewest || !most || fewest === most) return Number.NaN;
  return paired(most.samples, fewest.samples, (a, b) => a.cpuMicros / b.cpuMicros) - 1;
}

/**
 * Returns the growth within the second half, three readings against three: a heap that is still being filled grows in steps, and
 * then stays constant, while a leak continues.
 */
function flatness(readings: readonly { bytes: number }[]): number {
  const bytes = readings.slice(-6).map((reading) => reading.bytes);
  return median(bytes.slice(3)) / median(bytes.slice(0, 3)) - 1;
}

/** Formats a share of 1 as per cent. */
export function percent(share: number): string {
  return `${(share * 100).toFixed(1)} %`;
}

/** Formats milliseconds with three decimals. */
export function milliseconds(ms: number): string {
  return `${ms.toFixed(3)} ms`;
}

/** Formats a whole number with thousands separators. */
export function thousands(value: number): string {
  return Math.round(value).toLocaleString('en');
}

function signedPercent(share: number): string {
  return `${share < 0 ? '−' : '+'}${(Math.abs(share) * 100).toFixed(1)} %`;
}
