/** Links that a person opens on a phone. */
import { isIP } from 'node:net';
import { renderUnicodeCompact } from 'uqr';

/** Renders a link as a QR code (ISO/IEC 18004) of half blocks, with the quiet zone of four modules; light on dark, as terminals are. */
export const asQrCode = (link: string): string => renderUnicodeCompact(link, { border: 4 });

/** Returns what to do where a code is wider than the terminal, which would wrap its lines; undefined when it fits. `columns`: of the terminal. */
export function tooWide(code: string, columns: number): string | undefined {
  const width = code.indexOf('\n');
  return width <= columns
    ? undefined
    : `The QR code has ${width} columns and this terminal ${columns}: make it wider or its characters smaller, and run this again.`;
}

/** Returns why a phone cannot open a link, or use passkeys on its page, and what to do; undefined when it probably can. */
export function notForPhones(link: string): string | undefined {
  const { hostname, protocol } = new URL(link);
  const host = hostname.replace(/^\[|\]$/g, '');
  if (host === 'localhost' || host.endsWith('.localhost') || host === '::1' || host.startsWith('127.'))
    return `A phone cannot open ${hostname}, which is each device itself. ${WHAT_TO_DO}`;
  if (protocol !== 'https:') return `Without https a phone can open this, but has no passkeys. ${WHAT_TO_DO}`;
  if (isIP(host)) return `Passkeys need a name, not the address ${host}. ${WHAT_TO_DO}`;
  return undefined;
}

const WHAT_TO_DO = 'Set BASE_URL to an https address that leads here: docs/approvals.md, "Reach it from your phone".';
