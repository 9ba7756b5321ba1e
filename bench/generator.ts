/** The client of the load generator process: starts it, sends orders and receives reports. */
import type { Latency } from './histogram.ts';
import { type Child, forkChild } from './process.ts';

export type LoadOrder = {
  host: string;
  port: number;
  connections: number;
  /** Complete requests, head and body, sent in turn and then again from the first. */
  requests: readonly Uint8Array[];
  warmupMs: number;
  measureMs: number;
  /** The maximum number of calls: sending ends there even when time is left. */
  mostCalls: number;
};

export type LoadReport = {
  sent: number;
  answered: number;
  /** Answers within the measured time, from which the rate and the latency are computed. */
  measured: number;
  seconds: number;
  rate: number;
  latency: Latency;
  /** All answers by status, including those of the warm-up. */
  statuses: Record<string, number>;
  errors: Record<string, number>;
};

export type LoadGenerator = { child: Child; run(order: LoadOrder): Promise<LoadReport> };

/** Starts the load generator, which takes one order at a time. An order fails when the process ends, or when it runs far beyond its time. */
export async function startLoadGenerator(): Promise<LoadGenerator> {
  const child = await forkChild('load.ts', {});
  const { process: worker } = child;
  return {
    child,
    run(order) {
      return new Promise((resolve, reject) => {
        const late = setTimeout(() => settle(() => reject(new Error('The load generator does not answer.'))), 600_000);
        const onExit = () => settle(() => reject(new Error('The load generator ended in the middle of a run.')));
        const onMessage = (message: { report?: LoadReport; failed?: string }) => {
          const { report, failed } = message;
          settle(() => (report ? resolve(report) : reject(new Error(`The load generator failed: ${failed}`))));
        };
        worker.on('message', onMessage);
        worker.once('exit', onExit);
        worker.send(order);

        function settle(how: () => void): void {
          clearTimeout(late);
          worker.off('message', onMessage);
          worker.off('exit', onExit);
          how();
        }
      });
    },
  };
}
