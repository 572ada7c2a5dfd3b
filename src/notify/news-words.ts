import { encodeId } from '../domain/ids.ts';
import { asSum, formatAmount, microUsdt } from '../domain/money.ts';
import { toIso } from '../domain/time.ts';
import type { countAlarms, AlarmNews as FoundAlarm, MoneyNews, OwnerNews, sumDay } from '../store/outbox/news.ts';
import { oneLine } from './message.ts';

export type Words = { title: string; body: string };

/** `resolvedAt`: `null` also where somebody closed it past Quittance. */
type AlarmNews = Omit<FoundAlarm, 'end' | 'words'>;

const MADE_UP =
  'Quittance did not raise this alarm, or not with these words: somebody wrote it to the database. See "row-changed" in docs/operations.md';
/** The bounds of the schema are wider. */
const MAX_SUBJECT = 80;
const MAX_TITLE = 180;

export function alarmWords(news: AlarmNews): Words {
  const { network, detail, raisedAt, resolvedAt, seal } = news;
  const named = name(news);
  if (resolvedAt === null) {
    const text = seal ? detail : MADE_UP;
    return {
      title: oneLine(`ALARM on ${network}: ${named}`, MAX_TITLE),
      body: `${text}\n\nRaised ${toIso(raisedAt)}. More: quittance chain status --network ${network}`,
    };
  }
  // Nothing vouches for the words of an alarm that is over.
  return {
    title: oneLine(`ALARM on ${network}: ${named}`, MAX_TITLE),
    body: `It began ${toIso(raisedAt)} and is over.`,
  };
}

export function alarmOverWords(news: AlarmNews): Words {
  const { network, raisedAt, resolvedAt } = news;
  const ended = resolvedAt === null ? '' : `, ended ${toIso(resolvedAt)}`;
  return {
    title: oneLine(`Over on ${network}: ${name(news)}`, MAX_TITLE),
    body: `The alarm is over: raised ${toIso(raisedAt)}${ended}.`,
  };
}

function name({ kind, subject }: Pick<AlarmNews, 'kind' | 'subject'>): string {
  return subject === '' ? kind : `${kind} (${oneLine(subject, MAX_SUBJECT)})`;
}

export function moneyWords({ network, projectId, projectName, kind, amountMicro, txId, seal }: MoneyNews): Words {
  if (!seal) return { title: `Money without an order on ${network}: not as it was recorded`, body: MADE_UP };
  const why = kind === 'duplicate' ? 'pays an invoice that was paid already' : 'fits no invoice';
  const amount = formatAmount(microUsdt(amountMicro));
  return {
    title: oneLine(`Money without an order on ${network}: ${amount} USDT to ${projectName}`, MAX_TITLE),
    body: `${amount} USDT came to the project ${oneLine(projectName, MAX_SUBJECT)} (${encodeId('prj', projectId)}), and it ${why}.\n\nTransaction ${txId}. Why, and what to do: quittance explain ${txId}`,
  };
}

export function settledWords({ how, ...news }: MoneyNews & { how: string }): Words {
  const { network, projectName, amountMicro, txId } = news;
  const amount = formatAmount(microUsdt(amountMicro));
  return {
    title: oneLine(`Settled on ${network}: ${amount} USDT to ${projectName}, ${how}`, MAX_TITLE),
    body: `The decision about ${amount} USDT to the project ${oneLine(projectName, MAX_SUBJECT)}: ${how}. Transaction ${txId}.`,
  };
}

const OWNER_ACTIONS: Readonly<Record<OwnerNews['action'], string>> = {
  'admin-key.created': 'made an admin key with the role owner',
  'user.invited': 'invited an owner',
  'user.changed': 'gave a person the role owner',
  'user.reset': 'made a new sign-in link for an owner',
};

/** Whoever is an owner may do everything, so every channel hears of each new one. */
export function ownerWords({ seq, action, subject, detail, actedBy, origin, actedAt, seal }: OwnerNews): Words {
  const title = 'A new owner';
  if (!seal) return { title: `${title}: entry ${seq} of the audit log is not as it was recorded`, body: MADE_UP };
  const name = oneLine(detail.login ?? detail.name ?? '', MAX_SUBJECT);
  const undo = action === 'admin-key.created' ? `admin-key revoke ${subject}` : `user remove ${subject}`;
  const by = `${oneLine(actedBy, MAX_SUBJECT)}${origin === null ? '' : ` (${oneLine(origin, MAX_SUBJECT)})`}`;
  return {
    title: oneLine(`${title}: ${name}`, MAX_TITLE),
    body: `${by} ${OWNER_ACTIONS[action]}: ${name}, ${subject}, at ${toIso(actedAt)}. An owner may do everything.\n\nIf you did not expect it, undo it now: quittance ${undo}`,
  };
}

/** The day of a summary as it stands in the database. `auditHead`: where the log ends, so that a log that is written anew is noticed. */
export type Day = {
  day: string;
  sums: Awaited<ReturnType<typeof sumDay>>;
  alarms: Awaited<ReturnType<typeof countAlarms>>;
  auditHead: { seq: number; hash: string } | null;
};

export function summaryWords({ day, sums, alarms, auditHead }: Day): Words {
  const usdt = (micro: bigint) => `${asSum(formatAmount(microUsdt(micro)))} USDT in all`;
  const money = sums.map(
    ({ network, paid, paidMicro, strays, strayMicro }) =>
      `${network}: ${paid} invoices paid, ${usdt(paidMicro)}; without an order ${strays}, ${usdt(strayMicro)}`,
  );
  const open = alarms.map(({ network, kind, count }) => `open on ${network}: ${kind}${count > 1 ? ` (${count})` : ''}`);
  const lines = [
    ...(money.length === 0 ? ['No transfer in 24 hours.'] : money),
    ...(open.length === 0 ? ['No alarm is open.'] : open),
    ...(auditHead === null ? [] : [`Audit log: entry ${auditHead.seq}, ${auditHead.hash}`]),
  ];
  return { title: `Quittance, ${day}: the last 24 hours`, body: lines.join('\n').slice(0, MAX_BODY) };
}

const MAX_BODY = 2800;
