/** The bench's side of the load generator: starts the process, gives orders, takes reports. */
import type { Latency } from './histogram.ts';
import type { Child } from './process.ts';
import { forkChild } from './process.ts';

export type LoadOrder = {
  host: string;
  port: number;
  connections: number;
  /** Whole requests, head and body; sent in turn, again from the first when all were sent. */
  requests: readonly Uint8Array[];
  warmupMs: number;
  measureMs: number;
  /** Sending ends here even when time is left. */
  mostCalls: number;
};

export type LoadReport = {
  sent: number;
  answered: number;
  /** Answers within the measured time; the rate and the latency are theirs. */
  measured: number;
  seconds: number;
  rate: number;
  latency: Latency;
  /** All answers, those of the warm-up too. */
  statuses: Record<string, number>;
  errors: Record<string, number>;
};

export type LoadGenerator = { child: Child; run(order: LoadOrder): Promise<LoadReport> };

/** Starts the load generator. One order at a time; it fails when the process ends, or long after its time. */
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
