// What the main thread and the writer thread say to each other. Arrays of plain values, because they are cloned for every
// append; answers come back in the order of the writes, so nothing needs an id.

/** Tenant, user, session. */
export type Key = readonly [tenant: string, user: string, session: string]

/** `events` is flat: at, body, at, body, … */
export type Append = readonly [
  op: 'append',
  ...key: Key,
  expectedSeq: number,
  status: string,
  agent: string,
  title: string,
  wakeAt: number | null,
  /** Flat, in the order of the events that the records describe: seq, user, tool, status, body, … */
  audit: readonly (string | number | null)[],
  events: readonly (string | number)[],
]

export type Write =
  | Append
  | readonly [op: 'snapshot', ...key: Key, seq: number, version: number, data: string]
  | readonly [op: 'putFile', ...key: Key, path: string, data: Uint8Array, ifVersion: number | undefined]
  | readonly [op: 'deleteFile', ...key: Key, path: string]
  | readonly [
      op: 'announce',
      worker: string,
      host: string,
      pid: number,
      started: string,
      at: number,
      abandoned: boolean,
    ]
  | readonly [op: 'release', worker: string, host: string, pid: number, started: string]
  | readonly [op: 'forgetWorkers', silentSince: number]
  | readonly [op: 'probe']

/** Of an append: `stored`, or else the head that it met. Of `putFile`: the new version, 0 on a conflict. Else 0. */
export type WriterAnswer = number | WriteFailure
export const stored = -1

/** An SQLite error, taken apart so that it survives the way between threads. */
export interface WriteFailure {
  readonly errcode: number | undefined
  readonly message: string
  /** No error of SQLite: the file or its log was deleted or replaced. */
  readonly displaced?: true
}

/** To the thread: writes, the start or the end of watching a session, or the end of it all. */
export type ToWriter =
  | { readonly writes: readonly Write[] }
  | { readonly watch: number; readonly key: Key; readonly head: number }
  | { readonly unwatch: number }
  | { readonly close: true }

/** From the thread: the answers to the writes in their order, or the watches whose session somebody else appended to. */
export type FromWriter = { readonly answers: readonly WriterAnswer[] } | { readonly wake: readonly number[] }
