/** Checks the channels in which rules let a button decide. */

const WITH_BUTTONS: readonly string[] = ['slack', 'telegram'];

/** Returns why no button can decide in a channel, as a clause; undefined when one can. `kind`: of the channel; undefined: there is none of the name. */
export function whyNoButtons(kind: string | undefined): string | undefined {
  if (kind === undefined) return 'this channel does not exist';
  return WITH_BUTTONS.includes(kind) ? undefined : 'this channel has no buttons: only slack and telegram have';
}
