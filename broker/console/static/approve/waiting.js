// A waiting held call: the request, and the buttons that decide it.
/** @typedef {import('/console/approve/held.js').Held} Held */
/** @typedef {import('/console/approve/held.js').Status} Status */
/** @typedef {import('/console/approve/held.js').WaitingState} WaitingState */
/** @typedef {import('../../answers.ts').DecidedNow} DecidedNow */
/** @typedef {import('../../answers.ts').StandingBody} StandingBody */
/** @typedef {import('/console/approve/decision-methods.js').Verb} Verb */
import { asError, ask, Refused } from '/console/api.js';
import { DecideBar } from '/console/approve/decide-bar.js';
import { decisionMethodsOf, recordOf } from '/console/approve/decision-methods.js';
import { html, useMemo, useState } from '/console/html.js';
import {
  approveWithOlderPasskey,
  decideWithPasskey,
  enrol,
  hasEnded,
  suggestedName,
  withoutPasskeys,
} from '/console/passkeys/ceremony.js';
import { canDo, useProvider } from '/console/passkeys/use-provider.js';
import { CallTitle } from '/console/request-view/call-title.js';
import { ConfirmCall } from '/console/request-view/confirm-call.js';
import { RequestView } from '/console/request-view/request-view.js';
import { useSecondsLeft } from '/console/request-view/time-left.js';
import { Reauthenticate, wantsReauthentication } from '/console/shell/reauthenticate.js';
import { sendStanding } from '/console/standing/send.js';

/** @type {Readonly<Record<Verb, Status>>} */
const BECOMES = { approve: 'approved', deny: 'denied' };

/** @param {{ id: string, state: WaitingState } & Pick<Held, 'me' | 'answered' | 'deciding' | 'look' | 'lookAnew' | 'lookWho'>} props */
export function Waiting({ id, state: { held, changed, stale }, me, answered, deciding, look, lookAnew, lookWho }) {
  const [seen, setSeen] = useState(false);
  /** The verb in flight, and whether the passkey device has yet to respond. */
  const [busy, setBusy] = useState(/** @type {{ verb: Verb, device: boolean } | undefined} */ (undefined));
  const [problem, setProblem] = useState(/** @type {Error | undefined} */ (undefined));
  /** The confirmation that is open, and the hash of its request: it closes when the request changes. */
  const [asking, setAsking] = useState(/** @type {{ verb: Verb, hash: string } | undefined} */ (undefined));
  const [note, setNote] = useState('');
  const [terms, setTerms] = useState(/** @type {StandingBody | undefined} */ (undefined));
  const [byClick, setByClick] = useState(false);
  const seconds = useSecondsLeft(held);
  const ways = decisionMethodsOf(me ?? undefined, byClick);
  const over = seconds === 0;

  const decide = async (/** @type {Verb} */ verb, /** @type {() => Promise<Partial<DecidedNow>>} */ work) => {
    if (busy) return;
    setBusy({ verb, device: ways.how === 'passkey' });
    setProblem(undefined);
    try {
      await deciding(BECOMES[verb], work);
    } catch (error) {
      setProblem(asError(error));
      if (hasEnded(error) || (error instanceof Refused && [409, 410].includes(error.status))) await look();
    } finally {
      setBusy(undefined);
    }
  };
  const words = (/** @type {string} */ text) => (text.trim() === '' ? {} : { note: text.trim() });
  const byPasskey = (/** @type {Verb} */ verb) =>
    decide(verb, () =>
      decideWithPasskey(
        { purpose: verb, id, requestHash: held.request_hash, ...words(note), session: Boolean(ways.owner) },
        () => setBusy({ verb, device: false }),
      ),
    );
  const byOlderPasskey = () =>
    decide('approve', async () => {
      const { status } = await approveWithOlderPasskey(id, held.request_hash, () =>
        setBusy({ verb: 'approve', device: false }),
      );
      return { status };
    });
  const confirmed = (
    /** @type {Verb} */ verb,
    /** @type {string} */ own,
    /** @type {StandingBody | undefined} */ standing,
  ) => {
    setAsking(undefined);
    // Kept when the decision fails: the next confirmation begins with it.
    setNote(own);
    if (verb === 'approve') setTerms(standing);
    if (standing)
      return decide(verb, () => sendStanding({ id, requestHash: held.request_hash, standing, ...words(own) }));
    return decide(verb, () =>
      ask('POST', `/owner/approvals/${id}/${verb}`, { request_hash: held.request_hash, ...words(own) }),
    );
  };

  const before = me && !me.elsewhere ? me.details.approved_before : [];
  const approved = answered?.now?.status === 'pending' || before.some((one) => one.approved_by === me?.id);

  const { who, how } = recordOf(ways);
  // Computed again only when the request changes, not with every second of the countdown.
  const view = useMemo(
    () => html`<${RequestView} key=${held.request_hash} held=${held} onSeen=${setSeen} who=${who} how=${how} />`,
    [
      held.request,
      held.request_hash,
      held.agent.suspended,
      held.platform_suspended,
      held.connection_note,
      held.approvers?.given,
      who,
      how,
    ],
  );
  return html`
    <h1><${CallTitle} held=${held} /></h1>
    ${
      changed &&
      html`<div class="notice" data-kind="bad" role="alert"><p>The request has changed since you opened it.</p>
        <button type="button" onClick=${lookAnew}>Look again</button></div>`
    }
    ${stale && html`<p class="notice" data-kind="wait" role="status">${stale} What you see may be old.</p>`}
    ${!changed && view}
    ${ways.owner && !ways.owner.passkeys && html`<${Offer} done=${() => Promise.all([look(), lookWho()])} />`}
    ${
      me !== null &&
      html`<${DecideBar} ways=${ways} me=${me} held=${held} approved=${approved} seen=${seen} changed=${changed} over=${over} busy=${busy}
        problem=${problem} note=${note} setNote=${setNote} choose=${() => setByClick(!byClick)}
        act=${ways.how === 'passkey' ? byPasskey : (/** @type {Verb} */ verb) => setAsking({ verb, hash: held.request_hash })} older=${byOlderPasskey} />`
    }
    ${
      asking?.hash === held.request_hash &&
      html`<${ConfirmCall} what=${asking.verb} held=${held} id=${id} written=${note} terms=${terms}
        onYes=${(/** @type {string} */ own, /** @type {boolean} */ _all, /** @type {StandingBody | undefined} */ standing) => confirmed(asking.verb, own, standing)}
        onClose=${() => setAsking(undefined)} />`
    }
  `;
}

/** Offers a signed-in owner without a passkey to add one. @param {{ done: () => Promise<unknown> }} props */
function Offer({ done }) {
  const provider = useProvider();
  const [said, setSaid] = useState(/** @type {string | undefined} */ (undefined));
  const [tooOld, setTooOld] = useState(/** @type {Error | undefined} */ (undefined));
  if (withoutPasskeys()) return null;
  const add = () =>
    enrol(suggestedName()).then(
      ({ device_name }) => {
        setSaid(`“${device_name}” can ${canDo(provider)} from now on.`);
        return done();
      },
      (thrown) => {
        const error = asError(thrown);
        if (wantsReauthentication(error)) setTooOld(error);
        else setSaid(error.message);
      },
    );
  return html`<aside class="sheet offer">
    <div><h2>Decide with a passkey</h2>
      <p class="quiet small">${
        provider === null
          ? 'With a passkey on this device you need not sign in next time.'
          : 'A decision with a passkey of this device is recorded with that passkey.'
      } ${provider && 'You can then decide calls of agents that you own without signing in.'}</p></div>
    <button type="button" onClick=${add}>Add a passkey</button>
    ${tooOld && html`<${Reauthenticate} error=${tooOld} />`}
    <p class="small" role="status">${said}</p>
  </aside>`;
}
