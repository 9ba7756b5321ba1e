/** Errors raised when another replica has taken over a row or an approval; never retried. */
import { isRowFault } from '../store/row-fault.ts';

/** Thrown by a companion: another process has taken over the subject of the row. Not retried. */
export class Superseded extends Error {}

/** Another process considered this one dead and closed the row as unknown; `value` came too late. */
export class ClosedElsewhere extends Error {
  readonly value: unknown;
  constructor(value: unknown) {
    super('the row was closed by another process');
    this.value = value;
  }
}

/** Whether the same write can never succeed. */
export const isHopeless = (error: unknown): boolean => isRowFault(error) || error instanceof Superseded;
