import "../styles/modal.css";

import { X } from "lucide-react";
import { Dialog } from "radix-ui";
import type { ReactNode } from "react";

interface ModalProps {
  readonly open: boolean;
  readonly close: () => void;
  readonly title: string;
  readonly children: ReactNode;
}

/** A dialog above the page. The library's own overlay would write a style sheet, which the page's policy refuses. */
export function Modal({ open, close, title, children }: ModalProps) {
  return (
    <Dialog.Root open={open} onOpenChange={(opened) => !opened && close()}>
      <Dialog.Portal>
        <div className="modal-shade" aria-hidden />
        <Dialog.Content className="modal panel" aria-describedby={undefined}>
          <div className="row">
            <Dialog.Title>{title}</Dialog.Title>
            <Dialog.Close className="button plain end" aria-label="Close">
              <X aria-hidden />
            </Dialog.Close>
          </div>
          {children}
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
