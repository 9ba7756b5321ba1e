/** The trace context that an authenticated caller sends along (W3C Trace Context). What it is worth is said where traces are begun. */
import type { IncomingHttpHeaders } from 'node:http';

export const traceparentOf = ({ traceparent }: IncomingHttpHeaders): string | undefined =>
  typeof traceparent === 'string' ? traceparent : undefined;
