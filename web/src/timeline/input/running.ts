// The timeline that is on screen, for what is outside of it.
import {signal} from '@preact/signals';
import type {Command} from './keymap';

export const timelineRun = signal<((command: Command) => void) | undefined>(undefined);
