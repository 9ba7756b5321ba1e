/**
 * Gauges of the Node process, with the names that common dashboards use. The library has these too, but it observes garbage collections and
 * the event loop for the life of the process, once for each registry.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { Counter } from '@prometheus-io/client';
import { addGauge, type Instruments } from './instruments.ts';

/** Milliseconds: a finer resolution would wake an idle process more often. */
const DELAY_MS = 20;

/** Adds the gauges. Call the returned function to stop observing the event loop. */
export function addProcessGauges(instruments: Pick<Instruments, 'registry'>): () => void {
  const gauge = (name: string, help: string, read: () => number) => addGauge(instruments, name, help, read);
  new Counter({
    name: 'process_cpu_seconds_total',
    help: 'CPU time of the process and its threads.',
    registers: [instruments.registry],
    collect() {
      const { user, system } = process.cpuUsage();
      this.reset();
      this.inc((user + system) / 1e6);
    },
  });
  gauge(
    'process_start_time_seconds',
    'When it started, in seconds since the epoch.',
    () => performance.timeOrigin / 1000,
  );
  gauge('process_resident_memory_bytes', 'Memory that it takes.', () => process.memoryUsage.rss());
  gauge('process_open_fds', 'Descriptors that are open.', () => readdirSync('/proc/self/fd').length - 1);
  gauge('process_max_fds', 'How many may be.', mostDescriptors);
  gauge('nodejs_heap_size_used_bytes', 'Memory of objects.', () => process.memoryUsage().heapUsed);
  gauge('nodejs_external_memory_bytes', 'Memory of buffers.', () => process.memoryUsage().external);

  const delay = monitorEventLoopDelay({ resolution: DELAY_MS });
  delay.enable();
  // One reading for all three, over the time since the previous scrape.
  let read = { p50: 0, p99: 0, max: 0 };
  const lag = (name: string, what: string, of: () => number) =>
    gauge(`nodejs_eventloop_lag_${name}_seconds`, `Delay of the event loop since it was read before, ${what}.`, of);
  lag('p50', 'median', () => {
    const seconds = (nanoseconds: number) => Math.max(0, nanoseconds / 1e9 - DELAY_MS / 1000);
    const [p50, p99] = [delay.percentile(50), delay.percentile(99)];
    read = { p50: seconds(p50), p99: seconds(p99), max: seconds(delay.max) };
    delay.reset();
    return read.p50;
  });
  lag('p99', '99th percentile', () => read.p99);
  lag('max', 'longest', () => read.max);
  return () => void delay.disable();
}

/** Linux only; elsewhere this throws, and the gauge has no value. */
function mostDescriptors(): number {
  const [, most] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  return Number(most);
}
