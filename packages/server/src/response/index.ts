// A separate entry point, because it loads nothing of the service until a response is made.
export { type ResponseOptions, toResponse } from './to-response.ts'
export { type UiInput, uiInput } from './ui-messages.ts'
