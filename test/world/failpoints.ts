/**
 * Where a broker of `child-broker.ts` kills itself with SIGKILL, or outside of transactions holds the call for a test that kills it: then one kill
 * serves for several calls at different points. The last segment of a call's path names the point, so that one program serves for all. The numbers are
 * those of docs/hostile-cases.md.
 */
import type { Recorder } from '../../broker/audit/recorder.ts';
import type { AuditRow } from '../../broker/store/audit.ts';

const die = (): never => {
  process.kill(process.pid, 'SIGKILL');
  throw new Error('SIGKILL was not delivered');
};
/** Kills within a few ms after the write began, so that the commit may or may not have happened. */
const dieSoon = () => setTimeout(die, 2 * Math.random());
/** Goes no further with this call, and says so. */
const hold = (point: string): Promise<never> => {
  process.stdout.write(`held at ${point}\n`);
  return new Promise(() => {});
};

/** Applies to calls of this process only: rows of a dead process are recorded normally. */
export function plantFailpoints(recorder: Recorder, instanceId: string): void {
  const { record, intend } = recorder;
  const pointOf = (row: AuditRow) => (row.instance_id === instanceId ? row.path?.split('/').at(-1) : undefined);
  recorder.intend = (row, call, options) => {
    const point = pointOf(row);
    if (point === 'C1') return hold(point);
    if (point === 'C2') dieSoon();
    return intend(row, (makeDurable) => (point === 'C3' ? hold(point) : call(makeDurable)), options);
  };
  recorder.record = async (entry: Parameters<Recorder['record']>[0]) => {
    const { row, together } = entry as { row: AuditRow; together?: (...given: never[]) => Promise<unknown> };
    const point = pointOf(row);
    const isMade = row.kind === 'action' && row.result === 'allowed';
    const isHeldOrDecided = together !== undefined;
    if (point === 'C5' && isMade) await hold(point);
    if ((point === 'C6' && isMade) || (point === 'C8-late' && isHeldOrDecided)) dieSoon();
    if ((point === 'C8' || point === 'R1') && isHeldOrDecided)
      Object.assign(entry, {
        together: async (...given: never[]) => {
          await together(...given);
          die();
        },
      });
    const recorded = await record(entry);
    if (((point === 'C7' || point === 'R6') && isMade) || (point === 'R9' && isHeldOrDecided)) await hold(point);
    return recorded as never;
  };
}
