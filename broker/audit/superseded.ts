/** What another process was first with. */
import { isRowFault } from '../store/row-fault.ts';

/** Thrown by a companion: another process has taken over what the row is about. Nothing is tried again. */
export class Superseded extends Error {}

/** Another process took this one for dead and closed the row as unknown; `value` came too late for it. */
export class ClosedElsewhere extends Error {
  readonly value: unknown;
  constructor(value: unknown) {
    super('the row was closed by another process');
    this.value = value;
  }
}

/** Whether the same write can never succeed. */
export const isHopeless = (error: unknown): boolean => isRowFault(error) || error instanceof Superseded;
