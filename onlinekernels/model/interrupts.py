"""Work that no signal interrupts."""
from _thread import allocate_lock, get_ident, start_new_thread
from contextvars import copy_context
from threading import main_thread

__all__ = ["uninterrupted"]


def uninterrupted(function, *arguments):
    """Call a function that no signal interrupts: what a signal raises, such as KeyboardInterrupt, is raised when it is done.

    Either the function has been called and has come to its end, or it has not been called at all. So several things that
    belong together, such as the members of a composite, can change one after another, and nobody ever sees one ahead of
    another. What the function itself raises, for want of memory say, is another matter: it has to happen before the first
    change, or to be made up for by the function.

    Python's signals go to the main thread; so there another one does the work, with what the caller has set for this
    thread (`numpy.errstate`). In any other thread it is an ordinary call.
    """
    if get_ident() != main_thread().ident:
        return function(*arguments)
    tickets, done, found, context = [True], allocate_lock(), [], copy_context()
    done.acquire()

    def work():
        try:
            tickets.pop()  # who has it: this thread works, or the main one has given up before
        except IndexError:
            return
        try:
            found.append((context.run(function, *arguments), None))
        except BaseException as error:
            found.append((None, error))
        finally:
            done.release()

    signal = None
    try:
        start_new_thread(work, ())
    except BaseException as error:
        signal = error
    while not found and not (signal is not None and tickets and _taken(tickets)):  # a signal may come when it is done already
        try:
            done.acquire()
            break
        except BaseException as error:
            signal = error
    if found and found[0][1] is not None and signal is None:
        raise found[0][1]
    if signal is not None:
        raise signal
    return found[0][0]


def _taken(tickets):
    try:
        tickets.pop()
    except IndexError:
        return False
    return True
