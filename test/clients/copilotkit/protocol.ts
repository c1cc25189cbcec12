// Messages between the test and the program's process.

export interface Setup {
  /** The service's AG-UI endpoint. */
  readonly agentUrl: string
  /** How the runtime is mounted: one URL per operation, or one URL for all. */
  readonly mode: 'multi-route' | 'single-route'
}

export type Command =
  /** Loads the page again and opens a thread in it. */
  | { readonly type: 'open'; readonly threadId: string }
  /** Types a message and waits until the answer has ended. */
  | { readonly type: 'say'; readonly text: string }
  /** Presses the stop button; is answered by the end of what runs. */
  | { readonly type: 'stop' }

export interface Message {
  readonly role: string
  readonly content?: unknown
  readonly toolCalls?:
    | readonly { readonly function: { readonly name: string; readonly arguments: string } }[]
    | undefined
}

export interface Outcome {
  /** The AG-UI events that came to the page. */
  readonly events: readonly ({ readonly type: string } & Readonly<Record<string, unknown>>)[]
  /** The conversation that the page shows. */
  readonly messages: readonly Message[]
  /** The error that the page receives. */
  readonly errors: readonly { readonly code: string; readonly message: string }[]
}
