/** Distinguishes the address of a receiver, which is a setting, from the option `--url`. */
import type { ConnectionOptions } from './connection.ts';
import { WrongUsage } from './failure.ts';

/**
 * Throws WrongUsage where `--url` was given and the kind requires a setting `url` that is missing: the address was meant as that setting, and
 * the request would send the owner's session to the receiver.
 */
export function expectUrlSetting(
  kind: string,
  kindsWithUrl: readonly string[],
  settings: Readonly<Record<string, unknown>>,
  { url }: ConnectionOptions,
): void {
  if (url !== undefined && settings.url === undefined && kindsWithUrl.includes(kind))
    throw new WrongUsage(
      `--url is the address of the broker, which gets your owner session. Where the ${kind} is, is a setting: write url=${url}`,
    );
}
