/** Composes the message of a delivery from the current state of its subject. */
import type { Broker } from '../broker.ts';
import type { DeliveryEvent, NoticeDeliveryTable } from '../store/tables/notices.ts';
import { type Message, readable } from './message.ts';
import type { Subject } from './subject.ts';

const TITLES: Readonly<Record<DeliveryEvent, string>> = {
  call_changed: 'Approval needed',
  call_held: 'Approval needed',
  access_requested: 'Access requested',
  registration_waiting: 'An agent wants to register',
  agent_suspended: 'Agent suspended',
  connection_broken: 'Connection needs attention',
  passkey_added: 'Passkey added',
};

/** Whether the delivery is about a change of a held call that still waits. */
export const isUpdate = ({ event }: Pick<NoticeDeliveryTable, 'event'>): boolean => event === 'call_changed';

/** Returns from how many people an approval is needed: ` from 2 people`; empty where one decides. */
function peopleText({ approvers }: Subject): string {
  if (approvers === undefined) return '';
  const given = approvers.approved.length;
  const left = approvers.needed - given;
  return ` from ${left}${given > 0 ? ' more' : ''} ${left === 1 ? 'person' : 'people'}`;
}

export function messageOf(
  { baseUrl }: Pick<Broker, 'baseUrl'>,
  delivery: NoticeDeliveryTable,
  subject: Subject,
): Message {
  const { id, event, subject_id } = delivery;
  const step = isUpdate(delivery) ? 'update' : delivery.step;
  const title = `${TITLES[event]}${peopleText(subject)}`;
  const { approvers, progress } = subject;
  return {
    id,
    event: event === 'call_changed' ? 'call_held' : event,
    step,
    subjectId: subject_id,
    title: step === 'reminder' ? `${title} (reminder)` : title,
    sentence: subject.sentence,
    agent: subject.agent && readable(subject.agent.name),
    ...(subject.agent?.parent != null && { parent: readable(subject.agent.parent) }),
    platform: subject.platform && { id: subject.platform.id, name: readable(subject.platform.name) },
    until: subject.until,
    link: `${baseUrl}${subject.path}`,
    outcome: step === 'outcome' ? (subject.outcome ?? 'Over') : undefined,
    ...(progress && progress.length > 0 && { progress }),
    ...(approvers && {
      approvers: {
        needed: approvers.needed,
        approvedBy: approvers.approved.flatMap(({ email }) => (email === null ? [] : [email])),
      },
    }),
  };
}
