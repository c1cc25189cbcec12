// The page: a conversation, its tool calls, and buttons for what a person has to approve.
import { useChat } from '@ai-sdk/react'
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai'
import { type FormEvent, useState } from 'react'

export function Chat({ api = '/api/chat' }: { api?: string }) {
  const [text, setText] = useState('')
  const { messages, sendMessage, addToolApprovalResponse, status, error } = useChat({
    transport: new DefaultChatTransport({ api }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  })

  const send = (event: FormEvent): void => {
    event.preventDefault()
    void sendMessage({ text })
    setText('')
  }

  return (
    <main>
      {messages.map(({ id, role, parts }) => (
        <article key={id}>
          <strong>{role}</strong>
          <p>{parts.map((part) => (part.type === 'text' ? part.text : '')).join('')}</p>
          {parts.map((part) => {
            if (part.type !== 'dynamic-tool') return null
            const { approval, toolName, state } = part
            return (
              <p key={part.toolCallId}>
                {toolName}: {state}
                {/* A message in place of a decision has withdrawn the request. */}
                {state === 'approval-requested' && approval !== undefined && id === messages.at(-1)?.id && (
                  <>
                    <button type="button" onClick={() => addToolApprovalResponse({ id: approval.id, approved: true })}>
                      Approve
                    </button>
                    <button type="button" onClick={() => addToolApprovalResponse({ id: approval.id, approved: false })}>
                      Deny
                    </button>
                  </>
                )}
              </p>
            )
          })}
        </article>
      ))}
      {error !== undefined && <p role="alert">{error.message}</p>}
      <form onSubmit={send}>
        <input
          value={text}
          onChange={(event) => setText(event.target.value)}
          disabled={status === 'submitted' || status === 'streaming'}
        />
      </form>
    </main>
  )
}
